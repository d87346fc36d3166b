"""Several drafters as one: the source that has earned most on a stream is asked first.

Its time counts. A source that takes time is asked only where its draft is expected to earn more
than the one in hand, and more than the engine could have said while it waits for it.

The engine talks to a cascade. It keeps a `DraftBoard` for each request, so every draft it proposes
has passed the board's check. A draft that the target has refused is judged at once, so the next one
is as long as that makes it worth. When an answer is complete, each source is judged at the other
passes by what it drafted there or would have drafted, so one that was not asked can still earn.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import ceil
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DraftingError
from headstart.speculation.board import DraftBoard
from headstart.speculation.budget import DraftBudget
from headstart.speculation.draft import NOTHING, Draft
from headstart.speculation.drafted_request import AskedPass, DraftedRequest
from headstart.speculation.drafter import (
    Drafter,
    DraftRequest,
    Found,
    PreparingDrafter,
    SeeingDrafter,
)
from headstart.speculation.earnings import Judged, kind_of
from headstart.speculation.expectations import Expectations, ExpectedSource
from headstart.speculation.resting import Resting
from headstart.speculation.verdict import num_agreeing
from headstart.speculation.vocabulary import TextVocabulary

_log = logging.getLogger(__name__)

MAX_REQUESTS = 4096  # alive at a time; beyond this the oldest was lost by the engine
MAX_POSTERS = 8  # sources of posted drafts that are listened to, in one request
MAX_JUDGING_S = 0.002  # of one answer, over drafts of one source that were not asked for
MAX_FAILED_TENANTS = 16  # a drafter that failed for so many is out of order, and not one's words
MAX_MEANWHILE_S = 0.010  # of one pass: a drafter that begins later may not be done when it is over


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
        self._preparing = {
            drafter.name: drafter for drafter in drafters if isinstance(drafter, PreparingDrafter)
        }
        if len(self._drafters) < len(drafters):
            raise DraftingError("two drafters of a cascade have the same name: rename one")
        self._vocabulary = vocabulary
        self._budget = budget
        self._expected = Expectations(trust_less_on_change, budget)
        self.earnings = self._expected.earnings
        self._requests: OrderedDict[str, DraftedRequest] = OrderedDict()
        self._failed: dict[str, set[str]] = {}
        """Drafters that failed, and the tenants of the requests on which they did."""
        self._resting = Resting()
        self._lock = Lock()  # guards the table of requests, and who posted
        self._clock = clock

    @property
    def drafters(self) -> Collection[Drafter]:
        """Those it was built with; one that failed still holds what it remembers."""
        return self._drafters.values()

    def begin(self, request: DraftRequest) -> None:
        """Open a board for a request, and tell the drafters. One already begun starts over."""
        lost = None
        with self._lock:
            self._requests[request.id] = DraftedRequest(request, DraftBoard(self._vocabulary))
            if len(self._requests) > MAX_REQUESTS:
                lost = next(iter(self._requests))
        for source, drafter in self._drafting(request.stream.tenant):
            with self._dismissing(source, request.stream.tenant):
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
                state.sources.clear()
            state.board.post(draft)
        self._resting.wake(request_id)

    @property
    def prepares(self) -> bool:
        """Whether `while_computing` has anything to do."""
        return bool(self._preparing)

    def while_computing(self, said: Mapping[str, Sequence[int]]) -> None:
        """Do what nobody waits for, while the target computes a pass of these requests.

        ``said`` is what was confirmed of each before the pass. Drafters that take time get ready.
        One that was not asked drafts all the same, to be judged by it.
        """
        until_s = self._clock() + MAX_MEANWHILE_S
        for request_id, confirmed in said.items():
            state = self._requests.get(request_id)
            if state is None:
                continue
            tenant = state.request.stream.tenant
            for source, drafter in self._preparing.items():
                if self._clock() >= until_s:
                    return
                if self._has_failed(source, tenant):
                    continue
                if (asked := state.unheard(source)) is not None:
                    draft = self._ask(state, source, confirmed, asked.max_tokens)
                    asked.drafts[source] = draft
                else:
                    with self._dismissing(source, tenant):
                        drafter.prepare(request_id)

    def see(self, request_id: str, features: Mapping[str, NDArray[np.float16]]) -> None:
        """Show a request's clip to the drafters that look at it."""
        if (state := self._requests.get(request_id)) is None:
            return
        self._resting.wake(request_id)
        tenant = state.request.stream.tenant
        for source, drafter in self._drafting(tenant):
            if isinstance(drafter, SeeingDrafter):
                with self._dismissing(source, tenant):
                    drafter.see(request_id, features)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Draft:
        """How the answer may go on after ``confirmed``.

        Where no source is worth asking, the request rests for some passes; see `resting`.
        """
        state = self._requests.get(request_id)
        if state is None or max_tokens < 1:
            return NOTHING
        if not (self._drafters or state.posted_at_s):
            self._resting.rest(request_id)
            return NOTHING
        self._judge_refused(state, confirmed)
        asked = AskedPass(len(confirmed), max_tokens, self._clock())
        state.note(asked)
        request, in_hand, length = state.request, Draft((), "", 0.0, len(confirmed)), 0
        is_asked = False
        for source in self._sources(state, is_opening=not confirmed):
            if length and not source.price:
                continue  # the first of those that take no time is enough
            if not self._expected.is_worth_asking(request, source, in_hand, max_tokens):
                continue
            is_asked = True
            draft = asked.drafts[source.name] = self._ask(state, source.name, confirmed, max_tokens)
            worth = self._expected.num_worth(request, draft)
            # One that is not worth its verification still says by how many words it was found.
            if worth or (draft.tokens and not in_hand.tokens):
                in_hand, length = draft, worth
            if worth and source.price:
                break
        if not length:
            if confirmed and not is_asked and (self._budget is None or self._budget.is_usual):
                self._resting.rest(request_id)
            return NOTHING
        if self._budget is not None:
            self._budget.spend(length)
        is_cut = length < len(in_hand.tokens)
        return replace(in_hand, tokens=in_hand.tokens[:length]) if is_cut else in_hand

    @property
    def resting(self) -> Set[str]:
        """Requests that need not be asked about in this pass: nothing would be worth it.

        They are for some passes, unless a draft is posted or a clip is seen. What drafters learn
        meanwhile counts from the next answer on, as it does for those that are asked.
        """
        return self._resting.now

    def pass_begins(self, batch: int) -> None:
        """The next proposals are for one pass of so many requests."""
        self._resting.pass_begins()
        if self._budget is not None:
            self._budget.pass_begins(batch, len(self._resting.now))

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
        self._resting.wake(request_id)
        if answer:
            self._judge(state, answer)
        tenant = state.request.stream.tenant
        for source, drafter in self._drafters.items():
            # One that failed forgets the request, and learns no more.
            has_failed = self._has_failed(source, tenant)
            with suppress(Exception) if has_failed else self._dismissing(source, tenant):
                drafter.finish(request_id, () if has_failed else answer)

    def order(self, request_id: str, is_opening: bool) -> list[str]:
        """The sources of a request, in the order in which they are asked."""
        state = self._requests.get(request_id)
        return [source.name for source in self._sources(state, is_opening)] if state else []

    def _sources(self, state: DraftedRequest, is_opening: bool) -> Sequence[ExpectedSource]:
        """The same, as of the first time that it is asked for."""
        if known := state.sources.get(is_opening):
            return known
        with self._lock:
            names = [source for source, _ in self._drafting(state.request.stream.tenant)]
            names += state.posted_at_s
            known = state.sources[is_opening] = self._expected.order(
                state.request, names, is_opening
            )
        return known

    def _ask(
        self, state: DraftedRequest, source: str, confirmed: Sequence[int], max_tokens: int
    ) -> Draft:
        limit = self._expected.limit(state.request, source, max_tokens)
        drafter = self._drafters.get(source)
        if drafter is None:
            return state.board.propose(confirmed, limit, (source,))
        tenant = state.request.stream.tenant
        if self._has_failed(source, tenant):
            return NOTHING
        begun_s = self._clock()
        found: Sequence[int] = ()
        try:
            found = drafter.propose(state.request.id, confirmed, limit)
        except Exception:
            self._dismiss(source, tenant)
        now_s = self._clock()
        self._expected.asking.note(source, not confirmed, now_s - begun_s)
        if not found or not (tokens := state.board.text(found)[:limit]):
            return NOTHING
        match = found.match if isinstance(found, Found) else 0
        return Draft(tokens, source, now_s, len(confirmed), match)

    def _drafting(self, tenant: str) -> list[tuple[str, Drafter]]:
        """The drafters that have not failed for a tenant."""
        return [row for row in self._drafters.items() if not self._has_failed(row[0], tenant)]

    def _has_failed(self, source: str, tenant: str) -> bool:
        failed = self._failed.get(source)
        return failed is not None and (tenant in failed or len(failed) >= MAX_FAILED_TENANTS)

    @contextmanager
    def _dismissing(self, source: str, tenant: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._dismiss(source, tenant)

    def _dismiss(self, source: str, tenant: str) -> None:
        """A drafter that fails drafts no more for a tenant: its failure must not end the engine.

        Nor may one tenant's words take it from the others.
        """
        _log.exception("the drafter %s failed, and is not asked any more for this tenant", source)
        self._failed.setdefault(source, set()).add(tenant)

    def _judge_refused(self, state: DraftedRequest, confirmed: Sequence[int]) -> None:
        """Judge the last drafts that the target has refused by now: it is known how far they got.

        Posted drafts are left out: they may be redrafted, and count as they end.
        """
        last = state.passes[-1] if state.passes else None
        if last is None or last.at >= len(confirmed):
            return
        for source, draft in last.drafts.items():
            if source in last.judged or source in state.posted_at_s:
                continue
            judged = _judged(draft, confirmed[last.at :])
            if judged is not None and judged.num_accepted < judged.num_drafted:
                last.judged.add(source)
                self.earnings.credit(source, state.request.stream, (judged,))
                state.sources.clear()

    def _judge(self, state: DraftedRequest, answer: Sequence[int]) -> None:
        drafting = [source for source, _ in self._drafting(state.request.stream.tenant)]
        for source in [*drafting, *state.posted_at_s]:
            passes = []
            for asked in self._judged_passes(state, source):
                # A draft that was not there yet earned nothing. A redrafted one counts as it ended.
                if state.posted_at_s.get(source, asked.when_s) > asked.when_s:
                    continue
                if source in asked.judged:
                    continue
                draft = asked.drafts.get(source)
                if draft is None or source in state.posted_at_s:
                    draft = self._ask(state, source, answer[: asked.at], asked.max_tokens)
                if (judged := _judged(draft, answer[asked.at :])) is not None:
                    passes.append(judged)
            self.earnings.credit(source, state.request.stream, passes)

    def _judged_passes(self, state: DraftedRequest, source: str) -> Sequence[AskedPass]:
        """All that it was asked in, and of the others as many as its time allows, spread out."""
        unheard = [place for place, asked in enumerate(state.passes) if source not in asked.drafts]
        if source in self._preparing:  # it drafts while the target computes; nobody waits for it
            left_out = set(unheard)
        else:
            asking_s = self._expected.asking.seconds(source, is_opening=False)
            if asking_s * len(unheard) <= MAX_JUDGING_S:
                return state.passes
            stride = ceil(len(unheard) / max(1, int(MAX_JUDGING_S / asking_s)))
            left_out = set(unheard) - set(unheard[::stride])
        return [asked for place, asked in enumerate(state.passes) if place not in left_out]


def _judged(draft: Draft, said: Sequence[int]) -> Judged | None:
    """By what the target said; nothing if there was no draft."""
    # A draft longer than what was said was not wrong about the rest.
    num_drafted = min(len(draft.tokens), len(said))
    if not num_drafted:
        return None
    return Judged(kind_of(draft), num_drafted, num_agreeing(draft.tokens, said))
