"""How much of other people's prompts is computed beside the answers that are under way.

A pass with a prompt in it takes as long as both, and every answer in it waits for the prompt. Where
drafts make answers of a few passes, nearly every pass has somebody's prompt in it, and an answer
that needs more passes than others waits for as many more prompts. So each answer has an account. It
waits for prompts as long as others did, and half as long again; after a quiet time, when nobody had
to wait, as long as the prompts of a pass take. From then on it waits for them at most twice as long
as it computes itself. While answers are alike, nothing is held back: an engine
is fast with a full batch. What a pass and a token of a prompt take is measured, so the number of
tokens follows the machine.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headstart.speculation.pass_costs import PassCosts

PATIENCE = 1.5  # of the usual wait for prompts, over a whole answer
SHARE = 2.0  # of the time that an answer computes itself, once its patience is used up
FADE = 0.9  # of the usual wait, with each further answer; and of what a pass has of prompts


@dataclass(slots=True)
class _Account:
    computed_s: float = 0.0
    waited_s: float = 0.0


class PromptPace:
    """The accounts of the answers under way. Not thread-safe; no clock of its own."""

    def __init__(self, costs: PassCosts) -> None:
        self._costs = costs
        self._accounts: dict[str, _Account] = {}
        self._usual_s: float | None = None
        """For how long an answer of these days waits for prompts."""
        self._one_pass_s = 0.0
        """What the prompts in a pass take, where there are some."""

    def room(self, answers: Sequence[str]) -> int | None:
        """How many tokens of prompts the next pass may compute beside these answers.

        None stands for any number: nobody has waited for long, or nothing is known yet.
        """
        token_s, usual_s = self._costs.prompt_token_s, self._usual_s
        if usual_s is None or not token_s:
            return None
        patience_s = PATIENCE * max(usual_s, self._one_pass_s)
        late = [
            account
            for request_id in answers
            if (account := self._accounts.get(request_id)) is not None
            and account.waited_s > patience_s
        ]
        if not late:
            return None
        cost = self._costs.cost(len(answers))
        step_s = cost.step_s if cost is not None else 0.0
        left_s = min(SHARE * (one.computed_s + step_s) - one.waited_s for one in late)
        return max(0, int(left_s / token_s))

    def pass_ended(
        self,
        answers: Sequence[str],
        drafted_tokens: int,
        prompt_tokens: int,
        seconds: float,
        aborted: Collection[str] = (),
    ) -> None:
        """A pass of these answers took so long, so many tokens of prompts computed in it.

        Those ``aborted`` meanwhile were part of it, and are forgotten already.
        """
        prompts_s = 0.0
        if prompt_tokens:
            batch = len(answers)
            prompts_s = self._costs.observe_prompts(batch, drafted_tokens, prompt_tokens, seconds)
            before_s = self._one_pass_s or prompts_s
            self._one_pass_s = FADE * before_s + (1.0 - FADE) * prompts_s
        computed_s = max(0.0, seconds - prompts_s)
        for request_id in answers:
            if request_id in aborted:
                continue
            account = self._accounts.get(request_id)
            if account is None:
                account = self._accounts[request_id] = _Account()
            account.computed_s += computed_s
            account.waited_s += prompts_s

    def forget(self, request_id: str) -> None:
        """The answer is complete, or begins anew."""
        account = self._accounts.pop(request_id, None)
        if account is not None:
            before_s = account.waited_s if self._usual_s is None else self._usual_s
            self._usual_s = FADE * before_s + (1.0 - FADE) * account.waited_s
