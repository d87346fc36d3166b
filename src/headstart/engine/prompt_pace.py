"""How much of other people's prompts is computed beside the answers that are under way.

A pass with a prompt in it takes as long as both, and every answer in it waits for the prompt. Where
drafts make answers of a few passes, nearly every pass has somebody's prompt in it, and an answer
that needs more passes than others waits for as many more prompts. So each answer has an account. It
waits for prompts as long as others did, and half as long again; after a quiet time, when nobody had
to wait, as long as the prompts of a pass take. From then on it waits for them at most twice as long
as it computes itself.

What an answer is spared, prompts wait for, and with them everybody's first word. So they are held
back only while drafts say a good part of the words, and each for a fifth of the time that a pass's
prompts take: that is enough to let answers of a few passes go first (`tests/soak/prompt_pace.py`).
While answers are alike, nothing is held back: an engine is fast with a full batch. What a pass and
a token of a prompt take is measured, so the number of tokens follows the machine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from vllm.config import VllmConfig
from vllm.v1.core.sched.request_queue import RequestQueue
from vllm.v1.request import Request

from headstart.engine.draft_room import num_missing
from headstart.engine.pass_clock import TimedPass
from headstart.speculation.pass_costs import PassCosts

PATIENCE = 1.5  # of the usual wait for prompts, over a whole answer
SHARE = 2.0  # of the time that an answer computes itself, once its patience is used up
HELD = 0.2  # of the time that a pass's prompts take: for so long one is held back at most
FADE = 0.9  # of the usual wait, with each further answer; and of what a pass has of prompts
DRAFTED = 0.2  # of the words of late are drafts, or answers are not shortened worth speaking of
DRAFTED_FADE = 0.98  # of the words that were said, with each further pass


@dataclass(slots=True)
class Account:
    """Of one request, from its arrival until it has ended."""

    held_before_s: float
    """How long prompts had been held back when its own arrived."""
    computed_s: float = 0.0
    waited_s: float = 0.0


class PromptPace:
    """What all accounts have in common, and the rule. Not thread-safe; no clock of its own."""

    def __init__(self, costs: PassCosts, *, cuts_prompts: bool = True) -> None:
        """Where the engine ``cuts_prompts`` nowhere, a pass computes all of them or none."""
        self._costs, self._cuts_prompts = costs, cuts_prompts
        self._usual_s: float | None = None
        """For how long an answer of these days waits for prompts."""
        self._one_pass_s = 0.0
        """What the prompts in a pass take, where there are some."""
        self._held_s = 0.0
        """How long prompts have been held back, all in all."""
        self._room: int | None = None
        """Of the pass under way."""
        self._said = self._accepted = 0.0
        """Words of late, and how many of them were drafts."""

    def begin(self) -> Account:
        return Account(self._held_s)

    def room(self, answers: Sequence[Account], prompts: Iterable[Account]) -> int | None:
        """How many tokens of ``prompts`` the next pass may compute beside these answers.

        None stands for any number: nobody has waited for long, a prompt has been held back for
        long enough, drafts do not shorten answers, or nothing is known yet.
        """
        room = self._left(answers, prompts)
        self._room = room if self._cuts_prompts or not room else None
        return self._room

    def _left(self, answers: Sequence[Account], prompts: Iterable[Account]) -> int | None:
        token_s, usual_s = self._costs.prompt_token_s, self._usual_s
        if usual_s is None or not token_s or self._accepted < DRAFTED * self._said:
            return None
        usual_s = max(usual_s, self._one_pass_s)
        late = [one for one in answers if one.waited_s > PATIENCE * usual_s]
        if not late:
            return None
        longest_s = self._held_s - min((one.held_before_s for one in prompts), default=self._held_s)
        if longest_s >= HELD * self._one_pass_s:
            return None
        cost = self._costs.cost(len(answers))
        step_s = cost.step_s if cost is not None else 0.0
        left_s = min(SHARE * (one.computed_s + step_s) - one.waited_s for one in late)
        return max(0, int(left_s / token_s))

    def pass_ended(
        self, timed: TimedPass, answers: Iterable[Account], accepted_tokens: int
    ) -> None:
        """A pass is complete, so many drafted tokens of it accepted.

        Of the answers in it, ``answers`` are those that were not aborted meanwhile.
        """
        prompts_s, batch, prompt_tokens = 0.0, len(timed.answers), timed.prompt_tokens
        if prompt_tokens:
            prompts_s = self._costs.observe_prompts(
                batch, timed.drafted_tokens, prompt_tokens, timed.seconds
            )
            before_s = self._one_pass_s or prompts_s
            self._one_pass_s = FADE * before_s + (1.0 - FADE) * prompts_s
        computed_s = max(0.0, timed.seconds - prompts_s)
        if self._room is not None and prompt_tokens >= self._room:
            self._held_s += computed_s  # left to themselves, prompts would have begun by now
        self._room = None
        self._accepted = DRAFTED_FADE * self._accepted + accepted_tokens
        self._said = DRAFTED_FADE * self._said + accepted_tokens + batch
        for account in answers:
            account.computed_s += computed_s
            account.waited_s += prompts_s

    def end(self, account: Account) -> None:
        """The answer is complete, or begins anew."""
        if account.computed_s:
            before_s = account.waited_s if self._usual_s is None else self._usual_s
            self._usual_s = FADE * before_s + (1.0 - FADE) * account.waited_s


@dataclass(frozen=True, slots=True)
class PacedStep:
    """A step beside answers that have waited for long."""

    answers: Sequence[Request]
    """Laid out first, whatever they miss."""
    prompts: Sequence[Request]
    room: int
    """How many tokens of these prompts, and of those that wait, the step computes."""


def cuts_prompts(vllm_config: VllmConfig) -> bool:
    """Whether vLLM may end a step anywhere in a prompt.

    Not where it computes pictures or blocks of a recurrent state as a whole. It would cut a picture
    at whose beginning the last step has ended, and words of a picture may read each other.
    """
    config = vllm_config.scheduler_config
    whole_items = config.disable_chunked_mm_input
    whole_blocks = vllm_config.cache_config.mamba_cache_mode == "align"
    return config.enable_chunked_prefill and not (whole_items or whole_blocks)


class PacedSteps:
    """Says before each step which requests answer and which have a prompt. Not thread-safe."""

    def __init__(
        self,
        vllm_config: VllmConfig,
        pace: PromptPace,
        account_of: Callable[[Request], Account],
        *,
        paces: bool = True,
    ) -> None:
        self.pace, self._account_of, self._paces = pace, account_of, paces
        self._by_priority = vllm_config.scheduler_config.policy == "priority"

    def next_step(self, running: Sequence[Request], waiting: RequestQueue) -> PacedStep | None:
        """The next one; none where vLLM may lay it out as it does without us."""
        # What vLLM has computed to its end is an answer.
        prompts = [one for one in running if one.is_prefill_chunk and not _answers(one)]
        if not self._paces or not (prompts or waiting):
            return None
        answers = [request for request in running if _answers(request)]
        held = [*prompts, waiting.peek_request()] if waiting else prompts
        if any(request.num_output_tokens > 0 for request in held):
            return None  # it has answered already, and was put back
        spared = answers
        if self._by_priority:
            # Who is more urgent than an answer does not make way for it.
            most_urgent = min(request.priority for request in held)
            spared = [request for request in answers if request.priority <= most_urgent]
        room = self.pace.room(list(map(self._account_of, spared)), map(self._account_of, held))
        return None if room is None else PacedStep(answers, prompts, room)


def _answers(request: Request) -> bool:
    """Whether a request has begun to answer. One that was put back computes its words anew."""
    return num_missing(request) <= 1 or request.num_output_tokens > 0
