"""What rehearsals of live questions have said: the drafts of the answers that they rehearse."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a question was answered with before its last frame had landed."""

    token_ids: tuple[int, ...]
    is_whole: bool
    seconds: float
    """From rendering to its last word, or until it was cut off."""


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

    def __init__(self) -> None:
        self._table = FairTable[Reference, _Rehearsed](MAX_REFERENCES)

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


def _continued(said: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """What a rehearsal has said by now, and how the one before it goes on from there."""
    place = place_after(Draft(before, "", 0.0), said)
    return said if place is None else said + before[place:]
