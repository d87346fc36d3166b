"""What the work costs on one machine: figures that a bench measures or a person gives."""

from dataclasses import dataclass

from headstart.errors import PlanningError


@dataclass(frozen=True, slots=True)
class DrafterCosts:
    """A second model beside the target."""

    prefill_s: float
    step_s: float

    def tokens_within(self, seconds: float) -> int:
        """How many tokens it has ready after so long, its first one with its prefill."""
        if seconds < self.prefill_s:
            return 0
        return 1 + int((seconds - self.prefill_s) / self.step_s) if self.step_s > 0 else 0


@dataclass(frozen=True, slots=True)
class Costs:
    """A target on its engine.

    A pass over a batch takes a plain step, and a little more for each drafted token in it.
    """

    prefill_s: float
    """From asking to the first token, alone and undrafted: loading and vision included."""
    step_s: float
    """One decoding step of one request."""
    verify_token_s: float = 0.0
    """What a drafted token adds to a pass."""
    verify_pass_s: float = 0.0
    """What a pass costs more because anything was drafted at all."""
    overhead_s: float = 0.0
    """What an answer costs more with headstart's engine than with plain vLLM."""

    def __post_init__(self) -> None:
        if self.prefill_s <= 0 or self.step_s <= 0:
            raise PlanningError(
                "a prefill and a decoding step take time: give both above 0 ms, as measured"
            )
        if min(self.verify_token_s, self.verify_pass_s) < 0:
            raise PlanningError("a cost below zero: leave it at 0 where it cannot be told from it")

    def pass_s(self, draft_tokens: float, batch: int = 1) -> float:
        """One pass of a batch in which each request brings a draft of this length."""
        if draft_tokens <= 0:
            return self.step_s
        return self.step_s + self.verify_pass_s + self.verify_token_s * draft_tokens * batch
