"""What prefill, decoding and verification cost on one machine, as measured or as given."""

from dataclasses import dataclass

from headstart.errors import PlanningError


@dataclass(frozen=True, slots=True)
class Costs:
    """What a target on its engine costs: a pass takes a step, and more for every drafted token."""

    prefill_s: float
    """From the question to the first token without drafts; loading and vision are included."""
    step_s: float
    """One decoding step of one request."""
    verify_token_s: float = 0.0
    """What a drafted token adds to a pass."""
    verify_pass_s: float = 0.0
    """What a pass costs more as soon as it has any draft."""
    request_s: float = 0.0
    """What every further request of the batch adds to a pass."""
    overhead_s: float = 0.0
    """What an answer costs more with headstart's engine than with plain vLLM."""

    def __post_init__(self) -> None:
        if self.prefill_s <= 0 or self.step_s <= 0:
            raise PlanningError(
                "a prefill and a decoding step take time: give both above 0 ms, as measured"
            )
        if min(self.verify_token_s, self.verify_pass_s, self.request_s) < 0:
            raise PlanningError("a cost is below zero: give 0 where it is too small to measure")

    def pass_s(self, draft_tokens: float, batch: int = 1) -> float:
        """The time of one pass over a batch whose requests have a draft of this length each."""
        plain_s = self.step_s + self.request_s * (batch - 1)
        if draft_tokens <= 0:
            return plain_s
        return plain_s + self.verify_pass_s + self.verify_token_s * draft_tokens * batch
