"""Rehearsals inside the scheduler: live questions that are answered before their last frame lands.

A rehearsal is a request like any other, about the frames so far, and what it says becomes the first
draft of the real answer. Nobody waits for one. In a step that others need it takes part only as far
as it hardly makes the step longer; otherwise it is left out until the step is over. It ends when
its question is asked, when the next frame is due, when its time is used up, and before blocks would
be missing that anybody else needs.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, FinishReason
from vllm.v1.request import Request, RequestStatus

from headstart.engine.draft_room import num_missing
from headstart.engine.pass_clock import TimedPass
from headstart.engine.rehearsed_words import RehearsedWords
from headstart.engine.request_record import Ending, RehearsalCounts
from headstart.engine.request_state import RequestState
from headstart.speculation.pass_costs import PassCosts

MAX_PASS_TOKENS = 128
"""Of a step that only rehearses: whoever asks meanwhile waits for it."""
MAX_ADDED = 0.05
"""Of the time of a step that others need: by so much rehearsals may make it longer."""
MAX_ALIVE = 64
"""At a time. More would only wait for each other."""
WATERMARK = 0.05
"""Of all blocks: a rehearsal leaves so many free, beside what everybody else needs."""
MAX_SAVED_S = 2.0
"""Of the time that rehearsals may take and have not taken: a quiet hour buys no busy one."""
FADE = 0.8
"""Of what a pass of a rehearsal took before, with each further one."""


class RehearsalTime:
    """How much of the engine's time rehearsals may take: a share of what all others take.

    Not thread-safe; no clock of its own.
    """

    def __init__(self, share: float | None) -> None:
        """No ``share`` stands for any."""
        self._share = share
        self._left_s = MAX_SAVED_S / 2 if share else 0.0

    @property
    def is_used_up(self) -> bool:
        return self._share is not None and self._left_s <= 0.0

    def passed(self, seconds: float, rehearsed_s: float) -> None:
        """A pass took so long, so much of it for rehearsals."""
        if self._share is not None:
            earned_s = self._share * (seconds - rehearsed_s)
            self._left_s = min(MAX_SAVED_S, self._left_s + earned_s) - rehearsed_s


@dataclass(frozen=True, slots=True)
class RehearsedStep:
    """Which rehearsals take part in a step, and how many tokens of theirs it may compute."""

    taking_part: Sequence[Request] = ()
    left_out: Sequence[Request] = ()
    num_tokens: int = 0
    is_shared: bool = False
    """Whether anybody else is computed in it."""

    @property
    def running(self) -> Sequence[Request]:
        """Those of them that a step has computed before."""
        return [one for one in self.taking_part if one.status == RequestStatus.RUNNING]


class Rehearsals:
    """Of one engine, whose scheduler asks before and tells after each step. Not thread-safe."""

    def __init__(
        self,
        scheduler: Scheduler,
        share: float | None,
        costs: PassCosts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.words = RehearsedWords()
        self.counts = RehearsalCounts()
        self.alive: dict[str, RequestState] = {}
        """By their request's id, the oldest first."""
        self._scheduler = scheduler
        self._time, self._costs, self._clock = RehearsalTime(share), costs, clock
        self._is_on = share is None or share > 0
        manager = scheduler.kv_cache_manager
        groups = manager.kv_cache_config.kv_cache_groups
        self._pool, self._num_groups = manager.block_pool, max(1, len(groups))
        self._block_size = min((one.kv_cache_spec.block_size for one in groups), default=1)
        self._pass_s: dict[bool, float] = {}
        """Of a step that only rehearses, with a part of a prompt in it and without."""
        self._added_s = 0.0
        """By how much the step under way is longer."""
        self._given_up: list[Request] = []
        """Those whose front end has not heard yet that they are over."""

    def begin(self, state: RequestState) -> tuple[int, ...]:
        """A request has come. Of a live window, it takes the place of the last rehearsal.

        Returns what was rehearsed: the first draft of the question, or of the next rehearsal.
        """
        if (reference := state.reference) is None:
            return ()
        if (before := self.alive.get(self.words.under_way(reference))) is not None:
            self._give_up(before, Ending.CUT_OFF)
        if not state.rehearses:
            return self.words.take(reference)
        self.alive[state.request.request_id] = state
        return self.words.begin(reference, state.request.request_id)

    def ended(self, state: RequestState, *, is_whole: bool) -> None:
        """A request is over; what a rehearsal has said is kept."""
        request_id, reference = state.request.request_id, state.reference
        if self.alive.pop(request_id, None) is None or reference is None:
            return
        said = tuple(state.request.output_token_ids)
        ending = Ending.WHOLE if is_whole else state.ending or Ending.CUT_OFF
        self.counts.endings[ending] += 1
        self.counts.tokens += len(said)
        self.words.said(reference, request_id, said, is_whole=is_whole)

    def counted(self) -> RehearsalCounts:
        """What has become of rehearsals since this was asked last."""
        counted, self.counts = self.counts, RehearsalCounts()
        return counted

    def set_aside(self) -> RehearsedStep:
        """Before others are laid out: take all out of the scheduler's queues, end some."""
        alive, scheduler = self.alive, self._scheduler
        if not alive:
            return RehearsedStep()
        queues = (scheduler.waiting, scheduler.kv_holding_waiting)
        answers = [one for one in scheduler.running if one.request_id not in alive]
        waiting = [one for queue in queues for one in queue if one.request_id not in alive]
        others = [one for one in waiting if one.status != RequestStatus.WAITING_FOR_STREAMING_REQ]
        self._end_some([*answers, *others])
        scheduler.running[:] = answers
        for queue in queues:
            queue.remove_requests([one for one in queue if one.request_id in alive])
        return self._next_step(answers, anyone_waits=bool(others))

    def bring_in(self, step: RehearsedStep, limit: int) -> int:
        """Others are laid out: put after them who takes part.

        Returns how many tokens the step may compute, where it was ``limit`` without them.
        """
        num_tokens = step.num_tokens
        if step.is_shared:
            others = self._scheduler.running
            num_tokens += sum(one.num_tokens_with_spec - one.num_computed_tokens for one in others)
        self.put_back(step.taking_part)
        return min(num_tokens, limit)

    def put_back(self, requests: Iterable[Request]) -> None:
        """Into the queue that each was in, unless it has ended meanwhile."""
        for request in requests:
            if request.request_id in self.alive:
                if request.status == RequestStatus.RUNNING:
                    self._scheduler.running.append(request)
                else:
                    self._scheduler._enqueue_waiting_request(request)

    def passed(self, timed: TimedPass, names: Iterable[str]) -> None:
        """A step is over, in which these were computed."""
        if all(name in self.alive for name in names):
            kind = timed.prompt_tokens > 0
            before_s = self._pass_s.get(kind, timed.seconds)
            self._pass_s[kind] = FADE * before_s + (1.0 - FADE) * timed.seconds
            rehearsed_s = timed.seconds
        else:
            rehearsed_s = min(self._added_s, timed.seconds)
        self.counts.seconds += rehearsed_s
        self.counts.other_seconds += timed.seconds - rehearsed_s
        self._time.passed(timed.seconds, rehearsed_s)

    def tell(self, outputs: dict[int, EngineCoreOutputs]) -> None:
        """Add to a step's outputs that some have ended, for who waits for their words."""
        for request in self._given_up:
            over = EngineCoreOutput(request.request_id, [], finish_reason=FinishReason.ABORT)
            outputs.setdefault(request.client_index, EngineCoreOutputs()).outputs.append(over)
        self._given_up.clear()

    def _give_up(self, state: RequestState, ending: Ending) -> None:
        state.ending = ending
        self._given_up.append(state.request)
        request_id, aborted = state.request.request_id, RequestStatus.FINISHED_ABORTED
        self._scheduler.finish_requests(request_id, aborted)

    def _end_some(self, others: Sequence[Request]) -> None:
        """End those that cannot go on: they are late, out of time, or in the way."""
        now_s, rest = self._clock(), list[RequestState]()
        for one in list(self.alive.values()):
            if not self._is_on or one.withheld.samples or len(rest) == MAX_ALIVE:
                self._give_up(one, Ending.NO_ROOM)
            elif self._is_late(one, now_s):
                self._give_up(one, Ending.CUT_OFF)
            elif self._time.is_used_up:
                self._give_up(one, Ending.NO_TIME)
            else:
                rest.append(one)
        needed = int(WATERMARK * self._pool.num_gpu_blocks / self._num_groups)
        needed += sum(map(self._num_blocks, others))
        needed += sum(self._num_blocks(one.request) for one in rest)
        # The newest first. How many blocks come back is seen: others may share them.
        while rest and self._pool.get_num_free_blocks() // self._num_groups < needed:
            newest = rest.pop()
            needed -= self._num_blocks(newest.request)
            self._give_up(newest, Ending.NO_ROOM)

    def _is_late(self, state: RequestState, now_s: float) -> bool:
        """Whether its next pass would still be under way when the next frame is due."""
        until_s = state.tags.until_s if state.tags is not None else None
        has_prompt = not state.request.num_output_tokens
        return until_s is not None and now_s + self._pass_s.get(has_prompt, 0.0) > until_s

    def _num_blocks(self, request: Request) -> int:
        """How many blocks a request may still take in the next step, at most."""
        num_tokens = num_missing(request) + self._scheduler.num_spec_tokens
        return ceil(num_tokens / self._block_size) + 1

    def _next_step(self, answers: Sequence[Request], *, anyone_waits: bool) -> RehearsedStep:
        """Who rehearses beside ``answers``, which are whatever else runs."""
        ours = [one.request for one in self.alive.values()]
        self._added_s = 0.0
        if anyone_waits:
            return RehearsedStep((), ours)
        if not answers:
            return RehearsedStep(ours, (), MAX_PASS_TOKENS)
        num_tokens = self._num_added(answers)
        num_seats = max(0, self._scheduler.max_num_running_reqs - len(answers))
        some = ours[: min(num_tokens, num_seats)]
        return RehearsedStep(some, ours[len(some) :], num_tokens, is_shared=True)

    def _num_added(self, answers: Sequence[Request]) -> int:
        """How many tokens may be computed beside these answers, which hardly wait for them."""
        cost = self._costs.cost(len(answers))
        if cost is None or not cost.token_s:
            return 0
        num_tokens = min(MAX_PASS_TOKENS, int(MAX_ADDED * cost.step_s / cost.token_s))
        self._added_s = cost.token_s * num_tokens
        return num_tokens
