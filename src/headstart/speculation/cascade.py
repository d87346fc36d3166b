"""Several drafters as one: the source that has earned most on a stream is asked first.

Its time counts: what the engine could have said while it waits for the source's draft is taken off.

The engine talks to a cascade. It keeps a `DraftBoard` for each request, so every draft it proposes
has passed the board's check. When an answer is complete, each source is judged at each pass by what
it drafted there or would have drafted, so a source that was not asked can still earn.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DraftingError
from headstart.speculation.asking_times import AskingTimes
from headstart.speculation.board import DraftBoard
from headstart.speculation.budget import DraftBudget
from headstart.speculation.draft import NOTHING, Draft
from headstart.speculation.drafter import (
    Drafter,
    DraftRequest,
    Found,
    PreparingDrafter,
    SeeingDrafter,
)
from headstart.speculation.earnings import Earnings, Judged, kind_of
from headstart.speculation.verdict import num_agreeing
from headstart.speculation.vocabulary import TextVocabulary

_log = logging.getLogger(__name__)

MAX_REQUESTS = 4096  # alive at a time; beyond this the oldest was lost by the engine
MAX_POSTERS = 8  # sources of posted drafts that are listened to, in one request
MAX_JUDGED_PASSES = 8  # of one answer, spread over it: bounds the time of finishing it
MAX_JUDGING_S = 0.002  # of one answer, over drafts of one source that were not asked for
MIN_MEMORY_TOKENS = 8  # even of a new scene the way an answer begins is known


@dataclass(slots=True)
class _Pass:
    """What the target was about to compute when sources were asked."""

    at: int
    """How many tokens of the answer were confirmed."""
    max_tokens: int
    when_s: float
    drafts: dict[str, Draft] = field(default_factory=dict)
    """Of the sources that were asked, before the budget cut them."""


@dataclass(slots=True)
class _Request:
    request: DraftRequest
    board: DraftBoard
    posted_at_s: dict[str, float] = field(default_factory=dict)
    trusted: dict[bool, list[tuple[str, Sequence[float]]]] = field(default_factory=dict)
    """Before the first token, and after it: the sources in order, and how far each may survive."""
    passes: list[_Pass] = field(default_factory=list)
    """Some of them."""
    stride: int = 1
    num_passes: int = 0
    last_at: int = -1

    def note(self, asked: _Pass) -> None:
        """Keep every first, second, fourth... pass, so that those kept span the answer."""
        if asked.at == self.last_at:  # nothing was said since it was asked last
            if self.passes[-1].at == asked.at:
                self.passes[-1] = asked
            return
        self.last_at = asked.at
        if self.num_passes % self.stride == 0:
            if len(self.passes) == MAX_JUDGED_PASSES:
                del self.passes[1::2]
                self.stride *= 2
            if self.num_passes % self.stride == 0:
                self.passes.append(asked)
        self.num_passes += 1


class Cascade:
    """Drafters, asked in the order of what each has earned, beside drafts posted from elsewhere.

    `post` may be called from any thread, at any time; the rest from the engine's one thread.
    Nothing raises on a draft or on a request that is unknown. With a ``budget``, no more of a draft
    is proposed than its source's earnings are worth in this pass; the engine then calls
    `pass_begins` before and `pass_ended` after each pass.
    """

    def __init__(
        self,
        drafters: Sequence[Drafter],
        vocabulary: TextVocabulary,
        trust_less_on_change: frozenset[str] = frozenset({"memory"}),
        clock: Callable[[], float] = time.monotonic,
        budget: DraftBudget | None = None,
    ) -> None:
        self._drafters = {drafter.name: drafter for drafter in drafters}
        if len(self._drafters) < len(drafters):
            raise DraftingError("two drafters of a cascade have the same name: rename one")
        self._vocabulary = vocabulary
        self._remembering = trust_less_on_change
        self._budget = budget
        self.earnings = Earnings()
        self._asking = AskingTimes()
        self._requests: OrderedDict[str, _Request] = OrderedDict()
        self._lock = Lock()  # guards the table of requests, and who posted
        self._clock = clock

    @property
    def drafters(self) -> Collection[Drafter]:
        """Those it was built with."""
        return self._drafters.values()

    def begin(self, request: DraftRequest) -> None:
        """Open a board for a request, and tell the drafters. One already begun starts over."""
        lost = None
        with self._lock:
            self._requests[request.id] = _Request(request, DraftBoard(self._vocabulary))
            if len(self._requests) > MAX_REQUESTS:
                lost = next(iter(self._requests))
        for source, drafter in list(self._drafters.items()):
            with self._dismissing(source):
                drafter.begin(request)
        if lost is not None:
            self.finish(lost, ())

    def post(self, request_id: str, draft: Draft) -> None:
        """Put a draft on a request's board. A draft for a dead request is dropped.

        So is a draft that bears the name of a drafter of the cascade.
        """
        with self._lock:
            state = self._requests.get(request_id)
            if state is None or draft.source in self._drafters:
                return
            if draft.source not in state.posted_at_s:
                if len(state.posted_at_s) >= MAX_POSTERS:
                    return
                state.posted_at_s[draft.source] = self._clock()
                state.trusted.clear()
            state.board.post(draft)

    def prepare(self, request_id: str) -> None:
        """Let drafters get ready, while the target computes the request's prompt."""
        if request_id in self._requests:
            for source, drafter in list(self._drafters.items()):
                if isinstance(drafter, PreparingDrafter):
                    with self._dismissing(source):
                        drafter.prepare(request_id)

    def see(self, request_id: str, features: Mapping[str, NDArray[np.float16]]) -> None:
        """Show a request's clip to the drafters that look at it."""
        if request_id in self._requests:
            for source, drafter in list(self._drafters.items()):
                if isinstance(drafter, SeeingDrafter):
                    with self._dismissing(source):
                        drafter.see(request_id, features)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Draft:
        """How the answer may go on after ``confirmed``."""
        state = self._requests.get(request_id)
        if state is None or max_tokens < 1 or not (self._drafters or state.posted_at_s):
            return NOTHING
        asked = _Pass(len(confirmed), max_tokens, self._clock())
        state.note(asked)
        stream, budget = state.request.stream, self._budget
        for source, at_best in self._trusted(state, is_opening=not confirmed):
            if budget is not None and not budget.draft_length(at_best, max_tokens):
                continue  # not worth its verification, so not asked: asking costs time, too
            draft = asked.drafts[source] = self._ask(state, source, confirmed, max_tokens)
            length = len(draft.tokens)
            if budget is not None and length:
                survival = self.earnings.survival(source, stream, kind_of(draft))
                length = budget.draft_length(survival.shares, length)
            if length:
                if budget is not None:
                    budget.spend(length)
                is_cut = length < len(draft.tokens)
                return replace(draft, tokens=draft.tokens[:length]) if is_cut else draft
        return NOTHING

    def pass_begins(self, batch: int) -> None:
        """The next proposals are for one pass of so many requests."""
        if self._budget is not None:
            self._budget.pass_begins(batch)

    def pass_ended(self, drafted_tokens: int, seconds: float) -> None:
        """That pass only decoded, so many tokens of it drafted, and took so long."""
        if self._budget is not None:
            self._budget.pass_ended(drafted_tokens, seconds)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        """Close the board, judge the sources, and let the drafters learn.

        An aborted answer is empty, and teaches nothing. Drafts that arrive later are dropped.
        """
        with self._lock:
            state = self._requests.pop(request_id, None)
        if state is None:
            return
        if answer:
            self._judge(state, answer)
        for source, drafter in list(self._drafters.items()):
            with self._dismissing(source):
                drafter.finish(request_id, answer)

    def order(self, request_id: str, is_opening: bool) -> list[str]:
        """Sources of a request, the most trusted first; as given, where they earned the same."""
        state = self._requests.get(request_id)
        return [source for source, _ in self._trusted(state, is_opening)] if state else []

    def _trusted(self, state: _Request, is_opening: bool) -> Sequence[tuple[str, Sequence[float]]]:
        """The same with their best survival, as of the first time that it is asked for."""
        if known := state.trusted.get(is_opening):
            return known
        request, earnings = state.request, self.earnings

        def trust(source: str) -> float:
            share = 1.0 - request.change if source in self._remembering else 1.0
            accepted = share * earnings.accepted(source, request.stream, is_opening)
            return accepted - self._price(source)

        with self._lock:
            sources = sorted([*self._drafters, *state.posted_at_s], key=trust, reverse=True)
            known = state.trusted[is_opening] = [
                (source, earnings.best_survival(source, request.stream, is_opening).shares)
                for source in sources
            ]
        return known

    def _price(self, source: str) -> float:
        """What the time of a source's draft is worth, in tokens; under a tenth decides nothing."""
        worth_s = self._budget.token_worth_s if self._budget is not None else None
        return round(self._asking.seconds(source) / worth_s, 1) if worth_s else 0.0

    def _ask(
        self, state: _Request, source: str, confirmed: Sequence[int], max_tokens: int
    ) -> Draft:
        limit = max_tokens
        if state.request.change and source in self._remembering:
            trusted = round(max_tokens * (1.0 - state.request.change))
            limit = min(max_tokens, max(MIN_MEMORY_TOKENS, trusted))
        drafter = self._drafters.get(source)
        if drafter is None:
            return state.board.propose(confirmed, limit, (source,))
        begun_s = self._clock()
        found: Sequence[int] = ()
        try:
            found = drafter.propose(state.request.id, confirmed, limit)
        except Exception:
            self._dismiss(source)
        now_s = self._clock()
        self._asking.note(source, now_s - begun_s)
        if not found or not (tokens := state.board.text(found)[:limit]):
            return NOTHING
        match = found.match if isinstance(found, Found) else 0
        return Draft(tokens, source, now_s, len(confirmed), match)

    @contextmanager
    def _dismissing(self, source: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._dismiss(source)

    def _dismiss(self, source: str) -> None:
        """A drafter that fails drafts no more: its failure must not end the engine."""
        _log.exception("the drafter %s failed, and is not asked any more", source)
        self._drafters.pop(source, None)

    def _judge(self, state: _Request, answer: Sequence[int]) -> None:
        for source in [*self._drafters, *state.posted_at_s]:
            passes = []
            for asked in self._judged_passes(state, source):
                # A draft that was not there yet earned nothing. A redrafted one counts as it ended.
                if state.posted_at_s.get(source, asked.when_s) > asked.when_s:
                    continue
                draft = asked.drafts.get(source)
                if draft is None or source in state.posted_at_s:
                    draft = self._ask(state, source, answer[: asked.at], asked.max_tokens)
                said = answer[asked.at :]
                # A draft longer than what was left to say was not wrong about the rest.
                num_drafted = min(len(draft.tokens), len(said))
                if num_drafted:
                    agreeing = num_agreeing(draft.tokens, said)
                    passes.append(Judged(kind_of(draft), num_drafted, agreeing))
            self.earnings.credit(source, state.request.stream, passes)

    def _judged_passes(self, state: _Request, source: str) -> Sequence[_Pass]:
        """All that it was asked in, and of the others as many as its time allows, spread out."""
        asking_s = self._asking.seconds(source)
        unheard = [place for place, asked in enumerate(state.passes) if source not in asked.drafts]
        if asking_s * len(unheard) <= MAX_JUDGING_S:
            return state.passes
        stride = ceil(len(unheard) / max(1, int(MAX_JUDGING_S / asking_s)))
        left_out = set(unheard) - set(unheard[::stride])
        return [asked for place, asked in enumerate(state.passes) if place not in left_out]
