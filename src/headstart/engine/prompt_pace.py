"""How much of other people's prompts is computed beside the answers that are under way.

A pass with a prompt in it takes as long as both, and every answer in it waits for the prompt. Where
drafts make answers of a few passes, nearly every pass has somebody's prompt in it, and an answer
that needs more passes than others waits for as many more prompts. So each answer has an account: it
waits for prompts at most `PATIENCE` times as long as it has itself computed. What a pass and a
token of a prompt take is measured, so the number of tokens follows the machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headstart.speculation.pass_costs import PassCosts

PATIENCE = 2.0


@dataclass(slots=True)
class _Account:
    computed_s: float = 0.0
    waited_s: float = 0.0


class PromptPace:
    """The accounts of the answers under way. Not thread-safe; no clock of its own."""

    def __init__(self, costs: PassCosts) -> None:
        self._costs = costs
        self._accounts: dict[str, _Account] = {}

    def room(self, answers: Sequence[str]) -> int | None:
        """How many tokens of prompts the next pass may compute beside these answers.

        None stands for any number: nobody waits, or nothing is known yet of what prompts take.
        """
        token_s = self._costs.prompt_token_s
        if not answers or not token_s:
            return None
        # A step of a size that was never timed is computed alone once, and so timed.
        cost = self._costs.cost(len(answers))
        step_s = cost.step_s if cost is not None else 0.0
        least_s = PATIENCE * step_s
        for request_id in answers:
            if (account := self._accounts.get(request_id)) is not None:
                left_s = PATIENCE * (account.computed_s + step_s) - account.waited_s
                least_s = min(least_s, left_s)
        return max(0, int(least_s / token_s))

    def pass_ended(
        self, answers: Sequence[str], drafted_tokens: int, prompt_tokens: int, seconds: float
    ) -> None:
        """A pass of these answers took so long, so many tokens of prompts computed in it."""
        prompts_s = 0.0
        if prompt_tokens:
            batch = len(answers)
            prompts_s = self._costs.observe_prompts(batch, drafted_tokens, prompt_tokens, seconds)
        for request_id in answers:
            account = self._accounts.setdefault(request_id, _Account())
            account.computed_s += max(0.0, seconds - prompts_s)
            account.waited_s += prompts_s

    def forget(self, request_id: str) -> None:
        """The request is over, or begins anew."""
        self._accounts.pop(request_id, None)
