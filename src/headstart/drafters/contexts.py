"""Where runs of one, two, four, eight tokens occurred in a growing log, most recent first.

For each length a table of the last place of every hash, and for every place the distance back to
the one before it with the same hash: flat arrays of integers, so that a token costs the same few
bytes whatever is said. The log is another's; here are places in it only.
"""

import secrets
import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

MAX_LENGTH = 8
FIRST_BITS = 4  # of a hash
_WORD = 64
_MASK = (1 << _WORD) - 1
_NOWHERE = -1
_FAR = 1 << 31  # tokens back: forgotten long ago, and too far for a distance

_FACTORS = [secrets.randbits(_WORD) | 1 for _ in range(MAX_LENGTH)]
"""By distance to the end of a run. Drawn anew in each process: nobody can write answers that all
fall on one hash."""
_NUMPY_FACTORS = np.array(_FACTORS, dtype=np.uint64)


def hash_endings(said: Sequence[int]) -> list[int]:
    """Hashes of the last token, of the last two, and so on: of every context ``said`` ends with."""
    return list(accumulate(map(mul, said[: -1 - MAX_LENGTH : -1], _FACTORS)))


class ContextTable:
    """The places of all contexts of one length. Not thread-safe.

    A place is the number of the token that follows a context, counted from the first ever logged.
    ``heads`` has the last place of each hash, ``back`` for each token kept the distance to the
    place before it of the same hash, or 0. Whoever follows them compares the tokens: different
    contexts may share a hash.
    """

    __slots__ = ("back", "heads", "length", "shift")

    def __init__(self, length: int) -> None:
        self.length = length
        self.back = array("I")
        self.heads = array("q")
        self.empty(FIRST_BITS)

    def empty(self, bits: int) -> None:
        """Forget everything, and tell ``2 ** bits`` hashes apart from now on."""
        self.shift = _WORD - bits
        self.heads = array("q", [_NOWHERE]) * (1 << bits)
        self.back = array("I")

    @property
    def num_bytes(self) -> int:
        return sys.getsizeof(self) + sys.getsizeof(self.heads) + sys.getsizeof(self.back)

    def latest(self, hashes: list[int]) -> int:
        """The last place of these `hash_endings`; negative where there is none."""
        return self.heads[(hashes[self.length - 1] & _MASK) >> self.shift]

    def widen(self, bits: int) -> None:
        """Tell ``2 ** bits`` times as many hashes apart from now on, and forget nothing.

        Places noted before stay in the chains they share: whoever follows them compares tokens.
        """
        heads = np.repeat(np.frombuffer(self.heads, dtype=np.int64), 1 << bits)
        self.heads = array("q")
        self.heads.frombytes(heads.data.cast("B"))
        self.shift -= bits

    def extend(self, sums: NDArray[np.uint64], followed: NDArray[np.int64], first: int) -> None:
        """Note tokens logged from place ``first`` on, of which ``followed`` end a context.

        ``sums`` are all tokens' hashes, not yet shifted.
        """
        back = np.zeros(len(sums), dtype=np.uint32)
        slots = (sums[followed] >> np.uint64(self.shift)).astype(np.int64)
        places = followed + first
        heads = np.frombuffer(self.heads, dtype=np.int64)
        before = heads[slots]
        # Of several with one hash among these, each comes after the one before it here.
        order = slots.argsort(kind="stable")
        ordered = slots[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1])
        before[order[again + 1]] = places[order[again]]
        heads[slots] = places  # of equal slots the last assignment stays
        distances = places - before
        distances[(before < 0) | (distances > _FAR)] = 0
        back[followed] = distances
        self.back.frombytes(back.tobytes())


class Contexts:
    """A table for each of several lengths, at most `MAX_LENGTH`. Not thread-safe."""

    __slots__ = ("tables",)

    def __init__(self, lengths: Sequence[int]) -> None:
        self.tables = tuple(ContextTable(length) for length in sorted(lengths, reverse=True))

    @property
    def num_slots(self) -> int:
        """How many hashes are told apart."""
        return len(self.tables[0].heads)

    @property
    def num_bytes(self) -> int:
        own = sys.getsizeof(self) + sys.getsizeof(self.tables)
        return own + sum(table.num_bytes for table in self.tables)

    def extend(self, tokens: NDArray[np.int32], depths: NDArray[np.int64], first: int) -> None:
        """Note ``tokens``, which are logged from place ``first`` on.

        ``depths`` counts what comes before each in its own answer: a context lies in one answer.
        """
        words = tokens.astype(np.uint64)  # negative ones too, modulo 2**64
        sums = np.zeros(len(tokens), dtype=np.uint64)
        hashed = 0
        for table in reversed(self.tables):
            for distance in range(hashed + 1, table.length + 1):
                sums[distance:] += words[:-distance] * _NUMPY_FACTORS[distance - 1]
            hashed = table.length
            table.extend(sums, np.flatnonzero(depths >= table.length), first)

    def cut(self, num_tokens: int) -> None:
        """Leave out the first tokens that are kept. Nobody may follow places into them."""
        for table in self.tables:
            del table.back[:num_tokens]

    def widen(self) -> None:
        """Make room for four times as many tokens; costs a copy of the tables' heads."""
        for table in self.tables:
            table.widen(2)

    def rebuild(self, tokens: NDArray[np.int32], depths: NDArray[np.int64], first: int) -> None:
        """Make the tables anew, of these tokens alone, with about a slot for each."""
        for table in self.tables:
            table.empty(max(FIRST_BITS, len(tokens).bit_length()))
        self.extend(tokens, depths, first)
