"""Several drafters as one: the source that has earned most on a stream is asked first.

Its time counts. A source that takes time is asked only where its draft is expected to earn more
than the one in hand, and more than the engine could have said while it waits for it.

The engine talks to a cascade, and holds a `DraftedRequest` for each request. Every draft that is
proposed for it has passed its board's check. A draft that the target has refused is judged at once,
so the next one is as long as that makes it worth. When an answer is complete, each source is judged
at the other passes by what it drafted there or would have drafted, so one that was not asked can
still earn.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import ceil

from headstart.errors import DraftingError
from headstart.speculation.board import DraftBoard, TextVocabulary
from headstart.speculation.budget import DraftBudget
from headstart.speculation.draft import NOTHING, Draft, Match, num_agreeing
from headstart.speculation.drafted_request import AskedPass, DraftedRequest, Resting
from headstart.speculation.drafter import (
    Drafter,
    DraftRequest,
    Features,
    PreparingDrafter,
    SeeingDrafter,
)
from headstart.speculation.earnings import Judged, draft_kind
from headstart.speculation.expectations import Expectations, ExpectedSource

_log = logging.getLogger(__name__)

MAX_JUDGING_S = 0.002  # of one answer, over drafts of one source that were not asked for
MAX_FAILED_TENANTS = 16  # a drafter that failed for so many is out of order, and not one's words
MAX_MEANWHILE_S = 0.010  # of one pass: a drafter that begins later may not be done when it is over


class Cascade:
    """Drafters, asked in the order of what each has earned, beside drafts posted from elsewhere.

    `post` may be called from any thread, at any time; the rest from the engine's one thread.
    Nothing raises on a draft or on a request that is over. With a ``budget``, no more of a draft
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
        self._failed: dict[str, set[str]] = {}
        """Drafters that failed, and the tenants of the requests on which they did."""
        self._resting = Resting()
        self.num_open = 0
        """Requests that were begun and not finished."""
        self._clock = clock

    @property
    def drafters(self) -> Collection[Drafter]:
        """Those it was built with; one that failed still holds what it remembers."""
        return self._drafters.values()

    def begin(self, request: DraftRequest) -> DraftedRequest:
        """Open a board for a request, and tell the drafters. What it returns must be finished."""
        for source, drafter in self._drafting(request.stream.tenant):
            with self._dismissing(source, request.stream.tenant):
                drafter.begin(request)
        self.num_open += 1
        return DraftedRequest(request, DraftBoard(self._vocabulary))

    def post(self, drafted: DraftedRequest, draft: Draft) -> None:
        """Put a draft on a request's board. A draft for a request that is over is dropped.

        So is a draft that bears the name of a drafter of the cascade.
        """
        if draft.source not in self._drafters and drafted.post(draft, self._clock()):
            self._resting.wake(drafted)

    @property
    def prepares(self) -> bool:
        """Whether `while_computing` has anything to do."""
        return bool(self._preparing)

    def while_computing(self, said: Iterable[tuple[DraftedRequest, Sequence[int]]]) -> None:
        """Do what nobody waits for, while the target computes a pass of these requests.

        With each comes what was confirmed of it before the pass. Drafters that take time get ready.
        One that was not asked drafts all the same, to be judged by it.
        """
        until_s = self._clock() + MAX_MEANWHILE_S
        for drafted, confirmed in said:
            if drafted.is_over:
                continue
            tenant = drafted.request.stream.tenant
            for source, drafter in self._preparing.items():
                if self._clock() >= until_s:
                    return
                if self._has_failed(source, tenant):
                    continue
                if (asked := drafted.unheard(source)) is not None:
                    draft = self._ask(drafted, source, confirmed, asked.max_tokens)
                    asked.drafts[source] = draft
                else:
                    with self._dismissing(source, tenant):
                        drafter.prepare(drafted.request.id)

    def see(self, drafted: DraftedRequest, features: Mapping[str, Features]) -> None:
        """Show a request's clip to the drafters that look at it."""
        if drafted.is_over:
            return
        self._resting.wake(drafted)
        tenant = drafted.request.stream.tenant
        for source, drafter in self._drafting(tenant):
            if isinstance(drafter, SeeingDrafter):
                with self._dismissing(source, tenant):
                    drafter.see(drafted.request.id, features)

    def propose(self, drafted: DraftedRequest, confirmed: Sequence[int], max_tokens: int) -> Draft:
        """How the answer may go on after ``confirmed``.

        Where no source is worth asking, the request rests for some passes; see `resting`.
        """
        if drafted.is_over or max_tokens < 1:
            return NOTHING
        if not (self._drafters or drafted.posted_at_s):
            self._resting.rest(drafted)
            return NOTHING
        self._judge_refused(drafted, confirmed)
        asked = AskedPass(len(confirmed), max_tokens, self._clock())
        drafted.note(asked)
        request, in_hand, length = drafted.request, Draft((), "", 0.0, len(confirmed)), 0
        is_asked = False
        for source in self._sources(drafted, is_opening=not confirmed):
            if length and not source.price:
                continue  # the first of those that take no time is enough
            if not self._expected.is_worth_asking(request, source, in_hand, max_tokens):
                continue
            is_asked = True
            draft = self._ask(drafted, source.name, confirmed, max_tokens)
            asked.drafts[source.name] = draft
            worth = self._expected.paying_length(request, draft)
            # One that is not worth its verification still says by how many words it was found.
            if worth or (draft.tokens and not in_hand.tokens):
                in_hand, length = draft, worth
            if worth and source.price:
                break
        if not length:
            if confirmed and not is_asked and (self._budget is None or self._budget.is_usual):
                self._resting.rest(drafted)
            return NOTHING
        if self._budget is not None:
            self._budget.spend(length)
        is_cut = length < len(in_hand.tokens)
        return replace(in_hand, tokens=in_hand.tokens[:length]) if is_cut else in_hand

    @property
    def resting(self) -> Set[DraftedRequest]:
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

    def finish(self, drafted: DraftedRequest, answer: Sequence[int]) -> None:
        """Close the board, judge the sources, and let the drafters learn.

        An aborted answer is empty, and teaches nothing; nor does a rehearsal. Drafts that arrive
        later are dropped, and finishing once more does nothing.
        """
        if not drafted.end():
            return
        if drafted.request.is_rehearsal:
            answer = ()
        self.num_open -= 1
        self._resting.wake(drafted)
        if answer:
            self._judge(drafted, answer)
        tenant = drafted.request.stream.tenant
        for source, drafter in self._drafters.items():
            # One that failed forgets the request, and learns no more.
            has_failed = self._has_failed(source, tenant)
            with suppress(Exception) if has_failed else self._dismissing(source, tenant):
                drafter.finish(drafted.request.id, () if has_failed else answer)

    def order(self, drafted: DraftedRequest, is_opening: bool) -> list[str]:
        """The sources of a request, in the order in which they are asked."""
        return [source.name for source in self._sources(drafted, is_opening)]

    def _sources(self, drafted: DraftedRequest, is_opening: bool) -> Sequence[ExpectedSource]:
        """The same, as of the first time that it is asked for."""
        if known := drafted.sources.get(is_opening):
            return known
        request = drafted.request
        with drafted.lock:
            names = [source for source, _ in self._drafting(request.stream.tenant)]
            names += drafted.posted_at_s
            known = drafted.sources[is_opening] = self._expected.order(request, names, is_opening)
        return known

    def _ask(
        self, drafted: DraftedRequest, source: str, confirmed: Sequence[int], max_tokens: int
    ) -> Draft:
        limit = self._expected.limit(drafted.request, source, max_tokens)
        drafter = self._drafters.get(source)
        if drafter is None:
            return drafted.board.propose(confirmed, limit, (source,))
        tenant = drafted.request.stream.tenant
        if self._has_failed(source, tenant):
            return NOTHING
        begun_s = self._clock()
        found: Sequence[int] = ()
        try:
            found = drafter.propose(drafted.request.id, confirmed, limit)
        except Exception:
            self._dismiss(source, tenant)
        now_s = self._clock()
        self._expected.asking.note(source, not confirmed, now_s - begun_s)
        if not found or not (tokens := drafted.board.text(found)[:limit]):
            return NOTHING
        match = found.match if isinstance(found, Match) else 0
        return Draft(tokens, source, now_s, len(confirmed), match)

    def _drafting(self, tenant: str) -> list[tuple[str, Drafter]]:
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

    def _judge_refused(self, drafted: DraftedRequest, confirmed: Sequence[int]) -> None:
        """Judge the last drafts that the target has refused by now: it is known how far they got.

        Posted drafts are left out: they may be redrafted, and count as they end. So are those of a
        rehearsal, which may be cut off before anything speaks for them.
        """
        if drafted.request.is_rehearsal:
            return
        last = drafted.passes[-1] if drafted.passes else None
        if last is None or last.at >= len(confirmed):
            return
        for source, draft in last.drafts.items():
            if source in last.judged or source in drafted.posted_at_s:
                continue
            judged = _judged(draft, confirmed[last.at :])
            if judged is not None and judged.num_accepted < judged.num_drafted:
                last.judged.add(source)
                self.earnings.credit(source, drafted.request.stream, (judged,))
                drafted.sources.clear()

    def _judge(self, drafted: DraftedRequest, answer: Sequence[int]) -> None:
        drafting = [source for source, _ in self._drafting(drafted.request.stream.tenant)]
        for source in [*drafting, *drafted.posted_at_s]:
            passes = []
            for asked in self._judged_passes(drafted, source):
                # A draft that was not there yet earned nothing. A redrafted one counts as it ended.
                if drafted.posted_at_s.get(source, asked.when_s) > asked.when_s:
                    continue
                if source in asked.judged:
                    continue
                draft = asked.drafts.get(source)
                if draft is None or source in drafted.posted_at_s:
                    draft = self._ask(drafted, source, answer[: asked.at], asked.max_tokens)
                if (judged := _judged(draft, answer[asked.at :])) is not None:
                    passes.append(judged)
            self.earnings.credit(source, drafted.request.stream, passes)

    def _judged_passes(self, drafted: DraftedRequest, source: str) -> Sequence[AskedPass]:
        """All that it was asked in, and of the others as many as its time allows, spread out."""
        passes = drafted.passes
        unheard = [place for place, asked in enumerate(passes) if source not in asked.drafts]
        if source in self._preparing:  # it drafts while the target computes; nobody waits for it
            left_out = set(unheard)
        else:
            asking_s = self._expected.asking.seconds(source, is_opening=False)
            if asking_s * len(unheard) <= MAX_JUDGING_S:
                return passes
            stride = ceil(len(unheard) / max(1, int(MAX_JUDGING_S / asking_s)))
            left_out = set(unheard) - set(unheard[::stride])
        return [asked for place, asked in enumerate(passes) if place not in left_out]


def _judged(draft: Draft, said: Sequence[int]) -> Judged | None:
    """By what the target said; nothing if there was no draft."""
    # A draft longer than what was said was not wrong about the rest.
    num_drafted = min(len(draft.tokens), len(said))
    if not num_drafted:
        return None
    return Judged(draft_kind(draft), num_drafted, num_agreeing(draft.tokens, said))
