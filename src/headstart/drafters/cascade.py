"""Several drafters as one: the one that has earned most on this stream speaks first.

What an engine talks to. It owns a board for each request, so each proposal has passed the one
text check. When an answer is complete every source is judged at every pass, by what it said there
or would have said: so one that is not heard today can be heard tomorrow.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from headstart.drafters.port import Ask, Drafter, StreamKey
from headstart.drafters.record import TrackRecord
from headstart.drafting.board import NOTHING, DraftBoard, Proposal
from headstart.drafting.draft import Draft
from headstart.drafting.verdict import num_agreeing
from headstart.drafting.vocabulary import TextVocabulary
from headstart.errors import DraftingError
from headstart.planner.thrift import Thrift

MAX_REQUESTS = 4096  # alive at a time; beyond this the oldest was lost by the engine
MAX_POSTERS = 8  # sources of posted drafts that are listened to, in one request
MAX_JUDGED_PASSES = 8  # of one answer, spread over it: bounds the time of finishing it
MIN_MEMORY_TOKENS = 8  # even of a new scene the way an answer begins is known


@dataclass(slots=True)
class _Request:
    ask: Ask
    board: DraftBoard
    posted_at_s: dict[str, float] = field(default_factory=dict)
    passes: list[tuple[int, int, float]] = field(default_factory=list)
    """For some proposals: after how many tokens, of how many at most, when."""
    stride: int = 1
    num_passes: int = 0
    last_at: int = -1

    def note(self, at: int, max_tokens: int, now_s: float) -> None:
        """Keep every first, second, fourth... pass, so that those kept span the answer."""
        if at == self.last_at:  # nothing was said since it was asked last
            if self.passes[-1][0] == at:
                self.passes[-1] = (at, max_tokens, now_s)
            return
        self.last_at = at
        if self.num_passes % self.stride == 0:
            if len(self.passes) == MAX_JUDGED_PASSES:
                del self.passes[1::2]
                self.stride *= 2
            if self.num_passes % self.stride == 0:
                self.passes.append((at, max_tokens, now_s))
        self.num_passes += 1


class Cascade:
    """Drafters asked in the order of what each has earned, beside drafts posted from elsewhere.

    `post` may be called from any thread, at any time; the rest from the engine's one thread.
    Nothing raises on a draft or on a request that is unknown. With a ``thrift``, no more of a
    draft is proposed than its source's record is worth in this pass; the engine then frames its
    passes with `pass_begins` and `pass_ended`.
    """

    def __init__(
        self,
        drafters: Sequence[Drafter],
        vocabulary: TextVocabulary,
        trust_less_on_change: frozenset[str] = frozenset({"memory"}),
        max_streams: int = 1024,
        clock: Callable[[], float] = time.monotonic,
        thrift: Thrift | None = None,
    ) -> None:
        self._thrift = thrift
        self._drafters = {drafter.name: drafter for drafter in drafters}
        if len(self._drafters) < len(drafters):
            raise DraftingError("two drafters of a cascade have the same name: rename one")
        self._vocabulary = vocabulary
        self._remembering = trust_less_on_change
        self._record = TrackRecord(max_streams)
        self._requests: OrderedDict[str, _Request] = OrderedDict()
        self._lock = Lock()  # guards the table of requests, and who posted
        self._clock = clock

    def begin(self, ask: Ask) -> None:
        """Open a board for a request, and tell the drafters. One already begun starts over."""
        lost = None
        with self._lock:
            self._requests[ask.request] = _Request(ask, DraftBoard(self._vocabulary))
            if len(self._requests) > MAX_REQUESTS:
                lost = next(iter(self._requests))
        for drafter in self._drafters.values():
            drafter.begin(ask)
        if lost is not None:
            self.finish(lost, ())

    def post(self, request: str, draft: Draft) -> None:
        """Put a draft on a request's board; one for a dead request is dropped.

        A drafter of the cascade cannot be spoken for: drafts in its name are dropped too.
        """
        with self._lock:
            state = self._requests.get(request)
            if state is None or draft.source in self._drafters:
                return
            if draft.source in state.posted_at_s or len(state.posted_at_s) < MAX_POSTERS:
                state.posted_at_s.setdefault(draft.source, self._clock())
                state.board.post(draft)

    def propose(self, request: str, confirmed: Sequence[int], max_tokens: int) -> Proposal:
        """How the answer may go on: checked tokens, and whose they are."""
        state = self._requests.get(request)
        if state is None or max_tokens < 1:
            return NOTHING
        state.note(len(confirmed), max_tokens, self._clock())
        for source in self.order(request):
            length = max_tokens
            if self._thrift is not None:
                length = self._thrift.draft_length(source, state.ask.stream, max_tokens)
            # Who is not listened to is not asked either: on a busy engine that costs, too.
            proposal = self._ask(state, source, confirmed, max_tokens) if length else NOTHING
            if proposal.tokens:
                return replace(proposal, tokens=proposal.tokens[:length])
        return NOTHING

    def pass_begins(self, batch: int) -> None:
        """The next proposals are for one pass of so many requests."""
        if self._thrift is not None:
            self._thrift.pass_begins(batch)

    def pass_ended(self, drafted_tokens: int, seconds: float) -> None:
        """That pass only decoded, so many tokens of it drafted, and took so long."""
        if self._thrift is not None:
            self._thrift.pass_ended(drafted_tokens, seconds)

    def finish(self, request: str, answer: Sequence[int]) -> None:
        """Close the board and let the drafters learn; an aborted answer is empty, and teaches none.

        Drafts that arrive from now on are late, and dropped.
        """
        with self._lock:
            state = self._requests.pop(request, None)
        if state is None:
            return
        if answer:
            self._judge(state, answer)
        for drafter in self._drafters.values():
            drafter.finish(request, answer)

    def order(self, request: str) -> list[str]:
        """Sources of a request, the most trusted first; as given, where they earned the same."""
        state = self._requests.get(request)
        if state is None:
            return []
        ask = state.ask

        def trust(source: str) -> float:
            share = 1.0 - ask.change if source in self._remembering else 1.0
            return share * self._record.earned(ask.stream, source)

        with self._lock:
            sources = [*self._drafters, *state.posted_at_s]
        return sorted(sources, key=trust, reverse=True)

    def earned(self, stream: StreamKey, source: str) -> float:
        """Accepted tokens a draft of a source lately, on a stream."""
        return self._record.earned(stream, source)

    def _ask(
        self, state: _Request, source: str, confirmed: Sequence[int], max_tokens: int
    ) -> Proposal:
        limit = max_tokens
        if source in self._remembering:
            trusted = round(max_tokens * (1.0 - state.ask.change))
            limit = min(max_tokens, max(MIN_MEMORY_TOKENS, trusted))
        drafter = self._drafters.get(source)
        if drafter is not None:
            tokens = tuple(drafter.propose(state.ask.request, confirmed, limit))
            if not tokens:
                return NOTHING
            state.board.post(Draft(tokens, source, self._clock(), len(confirmed)))
        return state.board.propose(confirmed, limit, (source,))

    def _judge(self, state: _Request, answer: Sequence[int]) -> None:
        for source in (*self._drafters, *state.posted_at_s):
            drafts = [
                (self._ask(state, source, answer[:at], limit).tokens, answer[at:])
                for at, limit, when_s in state.passes
                # What was not there yet earned nothing. A redrafted one counts as it ended.
                if state.posted_at_s.get(source, when_s) <= when_s
            ]
            earned = [(len(tokens), num_agreeing(tokens, said)) for tokens, said in drafts]
            if earned:
                mean = sum(num_accepted for _, num_accepted in earned) / len(earned)
                self._record.credit(state.ask.stream, source, mean)
            if self._thrift is not None:
                # A draft longer than what was left to say was not wrong about the rest.
                self._thrift.earnings.credit(
                    source,
                    state.ask.stream,
                    [
                        (min(num_drafted, len(said)), num_accepted)
                        for (num_drafted, num_accepted), (_, said) in zip(
                            earned, drafts, strict=True
                        )
                    ],
                )
