"""What rehearsals of live questions have said: the drafts of the answers that they rehearse."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from headstart.speculation.board import place_after
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import StreamKey
from headstart.speculation.fair_table import FairTable

MAX_REFERENCES = 4096
"""Windows and questions whose words are kept. One that is never asked about is pushed out."""
MAX_WORDS = 512
"""Of one rehearsal; a board would not take more."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Which question about which window of a camera is rehearsed, and later answered."""

    stream: StreamKey
    window: str
    question: str


class Ending(StrEnum):
    """How a rehearsal ended."""

    WHOLE = "whole"
    """It said all that it had to say."""
    CUT_OFF = "cut_off"
    """Its question was asked, or its next frame was due. What it had said is used."""
    NO_ROOM = "no_room"
    """Others needed the blocks, or the engine samples where it could not verify its words."""
    NO_TIME = "no_time"
    """Rehearsals had taken their share of the engine's time."""


@dataclass
class RehearsalCounts:
    """What became of an engine's rehearsals in some time."""

    endings: Counter[Ending] = field(default_factory=Counter)
    tokens: int = 0
    """That they have said."""
    seconds: float = 0.0
    """Of the engine."""
    other_seconds: float = 0.0
    """Of the engine, for all else."""

    def as_json(self) -> list[Any]:
        """The form `parse` reads."""
        return [dict(self.endings), self.tokens, self.seconds, self.other_seconds]

    @classmethod
    def parse(cls, given: Sequence[Any]) -> Self:
        endings, tokens, seconds, other_seconds = given
        known = {Ending(name): number for name, number in endings.items()}
        return cls(Counter(known), tokens, seconds, other_seconds)

    def add(self, more: "RehearsalCounts") -> None:
        """Count also what became of others."""
        self.endings = self.endings + more.endings
        self.tokens += more.tokens
        self.seconds += more.seconds
        self.other_seconds += more.other_seconds


@dataclass(slots=True)
class _Rehearsed:
    words: tuple[int, ...] = ()
    under_way: str = ""
    """The request that rehearses it now."""


class RehearsedWords:
    """By reference, the newest words. Bounded, and no tenant pushes out another. Not thread-safe.

    Each rehearsal begins with the words of the one before it as its draft. One that was cut off has
    confirmed some of them; the rest is taken from the one before.
    """

    def __init__(self, max_references: int = MAX_REFERENCES) -> None:
        self._table = FairTable[Reference, _Rehearsed](max_references)

    def under_way(self, reference: Reference) -> str:
        """The rehearsal that must end before another one, or its question, takes its place."""
        known = self._table.get(reference.stream.tenant, reference)
        return "" if known is None else known.under_way

    def begin(self, reference: Reference, request_id: str) -> tuple[int, ...]:
        """A rehearsal has come: its draft."""
        known = self._table.get(reference.stream.tenant, reference) or _Rehearsed()
        known.under_way = request_id
        self._table.put(reference.stream.tenant, reference, known)
        return known.words

    def said(
        self, reference: Reference, request_id: str, said: tuple[int, ...], *, is_whole: bool
    ) -> None:
        """A rehearsal has ended, with so much said."""
        known = self._table.get(reference.stream.tenant, reference)
        if known is None or known.under_way != request_id:
            return  # its question was asked meanwhile, or another one took its place
        known.under_way = ""
        known.words = (said if is_whole else _continued(said, known.words))[:MAX_WORDS]

    def take(self, reference: Reference) -> tuple[int, ...]:
        """The question is asked: its draft, which nobody else needs."""
        known = self._table.get(reference.stream.tenant, reference)
        self._table.remove(reference.stream.tenant, reference)
        return () if known is None else known.words

    def __len__(self) -> int:
        return len(self._table)


def _continued(said: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """What a rehearsal has said by now, and how the one before it goes on from there."""
    place = place_after(Draft(before, "", 0.0), said)
    return said if place is None else said + before[place:]
