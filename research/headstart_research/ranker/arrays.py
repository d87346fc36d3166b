"""The answers of one tenant in flat arrays, as compiled code reads and extends them.

Answers stand one after another, each led by its question's mark. A place is a token's index. Arrays
are only appended to, so a thread may read what was there when it began while another appends.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart_research.compilation import compiled

CONTEXT_LENGTHS = (8, 4, 2, 1)
"""Of these many tokens the places of occurrence are chained; deepest first."""
NUM_LENGTHS = 4
LAST_WORD = 3  # the index of contexts of one token
NUM_COMMON = 8
SPREAD_SLOTS = 1 << 14
_HIGH = np.uint64(32)


class Arrays(NamedTuple):
    """Of one tenant. Two tokens may share a hash, so whoever follows a chain compares tokens."""

    tokens: NDArray[np.int32]
    answers: NDArray[np.int32]
    """Of each token, the number of the answer that it is in."""
    counts: NDArray[np.uint8]
    """Of each token, how often its answer has said each of the common tokens before it."""
    back: NDArray[np.int32]
    """By length of context, for each place the one before it with the same hash, or -1."""
    heads: NDArray[np.int32]
    """By length of context, for each hash its last place, or -1."""
    factors: NDArray[np.uint64]
    starts: NDArray[np.int32]
    """Of each answer, and the end of the last."""
    streams: NDArray[np.int32]
    """Of each answer, the number of the stream that it is of."""
    turns: NDArray[np.int32]
    """Of each answer, how many its stream had before it."""
    common: NDArray[np.int32]
    """The tokens that are said most often; -1 as long as they are not known."""
    spread: NDArray[np.int32]
    """By hash of a token, how many answers say it."""


@compiled
def slot_of_context(arrays: Arrays, said: NDArray[np.int32], stop: int, length: int) -> int:
    """The hash of the ``length`` tokens before ``stop``."""
    total = np.uint64(0)
    for distance in range(length):
        total += np.uint64(np.int64(said[stop - 1 - distance])) * arrays.factors[distance]
    return int(np.int64((total >> _HIGH) & np.uint64(arrays.heads.shape[1] - 1)))


@compiled
def slot_of_token(arrays: Arrays, token: int) -> int:
    """Where a token's spread is counted."""
    total = np.uint64(np.int64(token)) * arrays.factors[0]
    return int(np.int64((total >> _HIGH) & np.uint64(SPREAD_SLOTS - 1)))


@compiled
def count_common(arrays: Arrays, token: int, counts: NDArray[np.uint8]) -> None:
    for place in range(NUM_COMMON):
        if arrays.common[place] == token and counts[place] < 255:
            counts[place] += 1


@compiled
def append(arrays: Arrays, said: NDArray[np.int32], number: int, stream: int, turn: int) -> None:
    """Add the answer of this number, which must be the next; there must be room for it."""
    at = arrays.starts[number]
    arrays.streams[number] = stream
    arrays.turns[number] = turn
    counts = np.zeros(NUM_COMMON, dtype=np.uint8)
    for stop in range(len(said)):
        place, token = at + stop, said[stop]
        arrays.tokens[place] = token
        arrays.answers[place] = number
        for common in range(NUM_COMMON):
            arrays.counts[place, common] = counts[common]
        for kind in range(NUM_LENGTHS):
            length = CONTEXT_LENGTHS[kind]
            arrays.back[kind, place] = -1
            if stop >= length:
                slot = slot_of_context(arrays, said, stop, length)
                arrays.back[kind, place] = arrays.heads[kind, slot]
                arrays.heads[kind, slot] = place
        is_new = True
        for earlier in range(stop):
            if said[earlier] == token:
                is_new = False
                break
        if is_new:
            arrays.spread[slot_of_token(arrays, token)] += 1
        count_common(arrays, token, counts)
    arrays.starts[number + 1] = at + len(said)


@compiled
def append_all(arrays: Arrays, source: Arrays, first: int, stop: int) -> None:
    """Fill empty arrays with some answers of others."""
    for number in range(first, stop):
        said = source.tokens[source.starts[number] : source.starts[number + 1]]
        append(arrays, said, number - first, source.streams[number], source.turns[number])
