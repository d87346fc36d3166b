"""What each source's drafts have earned on each stream: how far the target accepted them lately.

Drafts are of several kinds, each with chances of its own: how an answer begins, how it goes on,
and, where it was looked up, by how many of the last words it was found.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple

from headstart.errors import DraftingError
from headstart.speculation.draft import Draft
from headstart.speculation.fair_table import FairTable

FADE = 0.95  # of what is known, each time that more is judged
PRIOR_CHANCE, PRIOR_TRIALS = 0.9, 0.5  # a new source is tried, and a few refusals end its credit
EARLY_ACCEPTED = 1.0  # tokens of a draft, expected of a source that was never judged
MAX_POSITIONS = 64
MAX_SOURCES = 64
MAX_MATCH = 31  # tokens: a longer match is as good
ALL_TENANTS = ""
MAX_NAME_CHARACTERS = 256
MAX_TAKEN_TRIALS = 4.0  # of what comes from elsewhere: some answers here outweigh it
_WIDE = 8  # positions from here on share what they know: few drafts get so far

Earned = dict[str, dict[str, list[list[float]]]]
"""By source and kind, how often the token of each position was right, and how often it was tried.
"""

Shares = tuple[float, ...]
"""Of drafts, those that are accepted up to their first, second, ... token."""

OPENING, LATER = 0, 1
"""Kinds of drafts: before the first token, and after it. Those by the length of a match follow."""


def draft_kind(draft: Draft) -> int:
    if not draft.start:
        return OPENING
    return LATER + min(draft.match, MAX_MATCH).bit_length()


class Judged(NamedTuple):
    """One pass of an answer: what a source drafted for it, or would have drafted."""

    kind: int
    num_drafted: int
    num_accepted: int


class _Chances:
    """Of each position, how often a token was right where all before it were."""

    __slots__ = ("_accepted", "_hits", "_survival", "_trials")

    def __init__(self) -> None:
        self._hits = [0.0] * (_WIDE + 1)
        self._trials = [0.0] * (_WIDE + 1)
        self._survival: Shares | None = None
        self._accepted: float | None = EARLY_ACCEPTED

    def learn(self, passes: Sequence[Judged]) -> None:
        for place in range(_WIDE + 1):
            self._hits[place] *= FADE
            self._trials[place] *= FADE
        for _, num_drafted, num_accepted in passes:
            for place in range(min(num_drafted, num_accepted + 1, MAX_POSITIONS)):
                kept = min(place, _WIDE)
                self._trials[kept] += 1.0
                self._hits[kept] += place < num_accepted
        self._survival = None
        self._accepted = None if self._trials[0] else EARLY_ACCEPTED

    def plain(self) -> list[list[float]]:
        return [list(self._hits), list(self._trials)]

    @classmethod
    def taken(cls, hits: Sequence[float], trials: Sequence[float]) -> "_Chances":
        """What was learnt elsewhere, which counts for `MAX_TAKEN_TRIALS` at most."""
        chances = cls()
        for place, (right, tried) in enumerate(zip(hits, trials, strict=True)):
            share = min(1.0, MAX_TAKEN_TRIALS / tried) if tried else 0.0
            chances._hits[place], chances._trials[place] = share * right, share * tried
        chances._accepted = None if chances._trials[0] else EARLY_ACCEPTED
        return chances

    def accepted(self) -> float:
        """Kept until more is learnt, as is `survival`: every pass asks for both."""
        if self._accepted is None:
            self._accepted = sum(self.survival())
        return self._accepted

    def survival(self) -> Shares:
        if self._survival is None:
            chances, before = [], PRIOR_CHANCE
            for hits, trials in zip(self._hits, self._trials, strict=True):
                # Where little is known of a position, it is like the one before it.
                before = (hits + before * PRIOR_TRIALS) / (trials + PRIOR_TRIALS)
                chances.append(before)
            wide = [before] * (MAX_POSITIONS - len(chances))
            self._survival = tuple(accumulate([*chances, *wide], mul))
        return self._survival


class _Source:
    """One source's drafts, on one stream or on all, by kind."""

    __slots__ = ("kinds",)

    def __init__(self) -> None:
        self.kinds: dict[int, _Chances] = {}

    def learn(self, passes: Sequence[Judged]) -> None:
        by_kind: dict[int, list[Judged]] = {}
        for judged in passes:
            by_kind.setdefault(judged.kind, []).append(judged)
            if judged.kind > LATER:  # each of them is a later one, too
                by_kind.setdefault(LATER, []).append(judged)
        for kind, of_kind in by_kind.items():
            self.kinds.setdefault(kind, _Chances()).learn(of_kind)


class Earnings:
    """The one ledger of drafts, by source and stream. Not thread-safe.

    Bounded in both, and no tenant can push out another's entries. A stream says whose it is by its
    ``tenant``; those that do not are one tenant's. On a stream where a source is new, what it
    earned on all others is expected of it.
    """

    def __init__(self, max_keys: int = 4096) -> None:
        self._known: FairTable[tuple[str, Hashable], _Source] = FairTable(max_keys)
        self._everywhere: FairTable[str, _Source] = FairTable(MAX_SOURCES)

    def __len__(self) -> int:
        return len(self._known)

    def credit(self, source: str, stream: Hashable, passes: Sequence[Judged]) -> None:
        """One more answer, or a part of one, of which these passes were judged."""
        known = self._known.get(_tenant(stream), (source, stream)) or _Source()
        everywhere = self._everywhere.get(ALL_TENANTS, source) or _Source()
        known.learn(passes)
        everywhere.learn(passes)
        self._known.put(_tenant(stream), (source, stream), known)
        self._everywhere.put(ALL_TENANTS, source, everywhere)

    def export(self, stream: Hashable) -> Earned:
        """What all sources have earned on a stream, for `take` to read."""
        tenant, found = _tenant(stream), {}
        for source, of_stream in self._known.keys(tenant):
            known = self._known.get(tenant, (source, of_stream))
            if of_stream == stream and known is not None and known.kinds:
                found[source] = {str(kind): c.plain() for kind, c in known.kinds.items()}
        return found

    def take(self, stream: Hashable, earned: Earned) -> None:
        """Expect of a stream what was learnt elsewhere, where nothing was learnt here."""
        for source, kinds in earned.items():
            if self._known.get(_tenant(stream), (source, stream)) is None:
                known = _Source()
                known.kinds = {int(kind): _Chances.taken(*given) for kind, given in kinds.items()}
                self._known.put(_tenant(stream), (source, stream), known)

    def forget(self, tenant: str, stream: Hashable | None = None) -> None:
        """Drop what was learnt of a tenant's stream, or of all its streams."""
        for key in self._known.keys(tenant):
            if stream is None or key[1] == stream:
                self._known.remove(tenant, key)

    def survival(self, source: str, stream: Hashable, kind: int) -> Shares:
        """To expect of a draft of this kind, at each position up to `MAX_POSITIONS`."""
        return self._chances(source, stream, kind).survival()

    def best_survival(self, source: str, stream: Hashable, is_opening: bool) -> Shares:
        """To expect of the next draft, if it is of the best kind that the source has shown."""
        first, last = (OPENING, OPENING) if is_opening else (LATER, LATER + MAX_MATCH.bit_length())
        kinds = (self._chances(source, stream, kind) for kind in range(first, last + 1))
        return max(kinds, key=_Chances.accepted).survival()

    def accepted(self, source: str, stream: Hashable, is_opening: bool) -> float:
        """How many tokens the target is expected to accept of the next draft."""
        return self._chances(source, stream, OPENING if is_opening else LATER).accepted()

    def _chances(self, source: str, stream: Hashable, kind: int) -> _Chances:
        of_stream = self._known.get(_tenant(stream), (source, stream))
        everywhere = self._everywhere.get(ALL_TENANTS, source)
        # Of a match of a new length, what is known of later drafts at all.
        for wanted in (kind, LATER) if kind > LATER else (kind,):
            for known in (of_stream, everywhere):
                if known is not None and wanted in known.kinds:
                    return known.kinds[wanted]
        return _UNJUDGED


def checked_earned(given: Any) -> Earned:
    """What `Earnings.take` reads, from outside; raises `DraftingError` where it cannot be that."""
    if not isinstance(given, Mapping) or len(given) > MAX_SOURCES:
        raise DraftingError("what sources have earned is no table of at most 64 sources")
    found: Earned = {}
    for source, kinds in given.items():
        known = {str(kind) for kind in range(LATER + MAX_MATCH.bit_length() + 1)}
        if not isinstance(source, str) or len(source) > MAX_NAME_CHARACTERS:
            raise DraftingError("what sources have earned names a source that cannot be")
        if not isinstance(kinds, Mapping) or not known.issuperset(kinds):
            raise DraftingError(f"what {source} has earned is of no kind of draft")
        found[source] = {kind: _checked_chances(source, each) for kind, each in kinds.items()}
    return found


def _checked_chances(source: str, given: Any) -> list[list[float]]:
    rows = given if isinstance(given, list | tuple) and len(given) == 2 else ([], [])
    if not all(isinstance(row, list | tuple) and len(row) == _WIDE + 1 for row in rows):
        raise DraftingError(f"what {source} has earned is not two rows of {_WIDE + 1} numbers")
    for hits, trials in zip(*rows, strict=True):
        numbers = all(type(number) in (int, float) for number in (hits, trials))
        if not numbers or not (0 <= hits <= trials and math.isfinite(trials)):
            raise DraftingError(f"{source} cannot have been right more often than it was tried")
    return [[float(number) for number in row] for row in rows]


def _tenant(stream: Hashable) -> str:
    return str(getattr(stream, "tenant", ALL_TENANTS))


_UNJUDGED = _Chances()
