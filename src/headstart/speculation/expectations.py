"""What is expected of a source's next draft: what it earned so far, less the price of its time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headstart.speculation.budget import DraftBudget
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import DraftRequest
from headstart.speculation.earnings import Earnings, draft_kind

FADE = 0.9  # of what is known, with each further draft
OUTLIER = 4.0  # times the usual: an interruption, not the source


class AskingTimes:
    """The mean of each source, in seconds; old drafts fade. Not thread-safe.

    Openings are apart: before an answer's first token a source may have to read what it knows of
    the stream.
    """

    def __init__(self) -> None:
        self._mean_s: dict[tuple[str, bool], float] = {}

    def note(self, source: str, is_opening: bool, seconds: float) -> None:
        """A source took so long over a draft."""
        kind = source, is_opening
        mean_s = self._mean_s.get(kind)
        if mean_s is None:
            self._mean_s[kind] = seconds
        else:
            bounded_s = min(seconds, OUTLIER * mean_s)
            self._mean_s[kind] = FADE * mean_s + (1.0 - FADE) * bounded_s

    def seconds(self, source: str, is_opening: bool) -> float:
        """What the next draft will take; 0 where none like it was ever timed."""
        return self._mean_s.get((source, is_opening), 0.0)


CAUTION = 1.5  # times the price of a wait: it is certain, and what the draft earns is not
MIN_MEMORY_TOKENS = 8  # even of a new scene the way an answer begins is known


@dataclass(frozen=True, slots=True)
class ExpectedSource:
    """A source of one request's drafts."""

    name: str
    at_best: Sequence[float]
    """How far its next draft may survive."""
    price: float
    """What the time of the draft is worth, in tokens."""


class Expectations:
    """Of all sources and streams. Not thread-safe.

    Of the ``remembering`` sources less is expected the more the scene has changed. Without a
    ``budget``, time has no price and every draft is worth its verification.
    """

    def __init__(self, remembering: frozenset[str], budget: DraftBudget | None) -> None:
        self.earnings = Earnings()
        self.asking = AskingTimes()
        self._remembering = remembering
        self._budget = budget

    def order(
        self, request: DraftRequest, names: Iterable[str], is_opening: bool
    ) -> list[ExpectedSource]:
        """Sources that take no time, then the others; of each the most trusted first."""
        stream, earnings = request.stream, self.earnings

        def place(source: ExpectedSource) -> tuple[bool, float]:
            accepted = earnings.accepted(source.name, stream, is_opening)
            trust = self._share(request, source.name) * accepted - source.price
            return source.price > 0.0, -trust

        sources = [
            ExpectedSource(
                name,
                earnings.best_survival(name, stream, is_opening),
                self._price(name, is_opening),
            )
            for name in names
        ]
        return sorted(sources, key=place)

    def is_worth_asking(
        self, request: DraftRequest, source: ExpectedSource, in_hand: Draft, max_tokens: int
    ) -> bool:
        """Whether the best that a source may draft is worth its verification, and its time."""
        budget, with_prompt = self._budget, not in_hand.start
        if budget is not None and not budget.draft_length(
            source.at_best, max_tokens, with_prompt=with_prompt
        ):
            return False
        return not source.price or self._earns_more(request, source, in_hand, max_tokens)

    def paying_length(self, request: DraftRequest, draft: Draft) -> int:
        """How many tokens of a draft are worth their verification."""
        length = len(draft.tokens)
        if self._budget is None or not length:
            return length
        survival = self.earnings.survival(draft.source, request.stream, draft_kind(draft))
        return self._budget.draft_length(survival, length, with_prompt=not draft.start)

    def limit(self, request: DraftRequest, source: str, max_tokens: int) -> int:
        """For how many tokens a source is asked: fewer the more the scene has changed."""
        if not request.change or source not in self._remembering:
            return max_tokens
        trusted = round(max_tokens * self._share(request, source))
        return min(max_tokens, max(MIN_MEMORY_TOKENS, trusted))

    def _earns_more(
        self, request: DraftRequest, source: ExpectedSource, in_hand: Draft, max_tokens: int
    ) -> bool:
        """Whether a draft that takes time is expected to earn clearly more than the one in hand.

        Each by what it earned after a match as long as the one in hand. A remembered answer that
        ends before ``max_tokens`` says how much is left to draft.
        """
        kind, length = draft_kind(in_hand), len(in_hand.tokens)
        is_whole = length < self.limit(request, in_hand.source, max_tokens)
        reach = length if is_whole and in_hand.source in self._remembering else max_tokens

        def expected(name: str, num_tokens: int) -> float:
            shares = self.earnings.survival(name, request.stream, kind)[:num_tokens]
            return self._share(request, name) * sum(shares)

        net = expected(source.name, reach) - CAUTION * source.price
        return net > expected(in_hand.source, length)

    def _share(self, request: DraftRequest, source: str) -> float:
        """Of what a source earned before, what it may earn after the change of the scene."""
        return 1.0 - request.change if source in self._remembering else 1.0

    def _price(self, source: str, is_opening: bool) -> float:
        """What the time of a source's draft is worth, in tokens; under a tenth decides nothing."""
        worth_s = self._budget.token_worth_s if self._budget is not None else None
        return round(self.asking.seconds(source, is_opening) / worth_s, 1) if worth_s else 0.0
