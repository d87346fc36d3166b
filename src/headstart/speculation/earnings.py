"""What each source's drafts have earned on each stream: how far the target accepted them lately."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from operator import mul

from headstart.planner.survival import Survival
from headstart.speculation.fair_table import FairTable

FADE = 0.95  # of what is known, with each further answer
PRIOR_CHANCE, PRIOR_TRIALS = 0.9, 0.5  # a new source is tried, and a few refusals end its credit
EARLY_ACCEPTED = 1.0  # tokens of a draft, expected of a source that was never judged
MAX_POSITIONS = 64
MAX_SOURCES = 64
ALL_TENANTS = ""
_WIDE = 8  # positions from here on share what they know: few drafts get so far


class _Chances:
    """Of each position, how often a token was right where all before it were."""

    __slots__ = ("_accepted", "_hits", "_survival", "_trials")

    def __init__(self) -> None:
        self._hits = [0.0] * (_WIDE + 1)
        self._trials = [0.0] * (_WIDE + 1)
        self._survival: Survival | None = None
        self._accepted: float | None = EARLY_ACCEPTED

    def learn(self, passes: Iterable[tuple[int, int]]) -> None:
        for place in range(_WIDE + 1):
            self._hits[place] *= FADE
            self._trials[place] *= FADE
        for num_drafted, num_accepted in passes:
            for place in range(min(num_drafted, num_accepted + 1, MAX_POSITIONS)):
                kept = min(place, _WIDE)
                self._trials[kept] += 1.0
                self._hits[kept] += place < num_accepted
        self._survival = None
        self._accepted = None if self._trials[0] else EARLY_ACCEPTED

    def accepted(self) -> float:
        """Kept until more is learnt, as is `survival`: every pass asks for both."""
        if self._accepted is None:
            self._accepted = sum(self.survival().shares)
        return self._accepted

    def survival(self) -> Survival:
        if self._survival is None:
            chances, before = [], PRIOR_CHANCE
            for hits, trials in zip(self._hits, self._trials, strict=True):
                # Where little is known of a position, it is like the one before it.
                before = (hits + before * PRIOR_TRIALS) / (trials + PRIOR_TRIALS)
                chances.append(before)
            wide = [before] * (MAX_POSITIONS - len(chances))
            self._survival = Survival(tuple(accumulate([*chances, *wide], mul)))
        return self._survival


class Earnings:
    """The one ledger of drafts, by source and stream. Not thread-safe.

    Bounded in both, and no tenant can push out another's entries. A stream says whose it is by its
    ``tenant``; those that do not are one tenant's. On a stream where a source is new, what it
    earned on all others is expected of it.
    """

    def __init__(self, max_keys: int = 4096) -> None:
        self._known: FairTable[tuple[str, Hashable], _Chances] = FairTable(max_keys)
        self._everywhere: FairTable[str, _Chances] = FairTable(MAX_SOURCES)

    def __len__(self) -> int:
        return len(self._known)

    def credit(self, source: str, stream: Hashable, passes: Sequence[tuple[int, int]]) -> None:
        """One more answer: for each of its passes, how much was drafted and how much accepted."""
        known = self._known.get(_tenant(stream), (source, stream)) or _Chances()
        everywhere = self._everywhere.get(ALL_TENANTS, source) or _Chances()
        known.learn(passes)
        everywhere.learn(passes)
        self._known.put(_tenant(stream), (source, stream), known)
        self._everywhere.put(ALL_TENANTS, source, everywhere)

    def survival(self, source: str, stream: Hashable) -> Survival:
        """To expect of the next draft, at each position up to `MAX_POSITIONS`."""
        return self._chances(source, stream).survival()

    def accepted(self, source: str, stream: Hashable) -> float:
        """How many tokens the target is expected to accept of the next draft."""
        return self._chances(source, stream).accepted()

    def _chances(self, source: str, stream: Hashable) -> _Chances:
        known = self._known.get(_tenant(stream), (source, stream))
        return known or self._everywhere.get(ALL_TENANTS, source) or _UNJUDGED


def _tenant(stream: Hashable) -> str:
    return str(getattr(stream, "tenant", ALL_TENANTS))


_UNJUDGED = _Chances()
