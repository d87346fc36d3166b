"""What an engine has learnt of one stream, in a form that can leave the engine.

It holds the stream's newest answers as token ids, each with a stand-in for its question, and what
each source of drafts has earned on the stream. It holds no question's text. Whoever takes one in
checks it first: a wrong one costs time and changes no token, but a malformed one could end an
engine.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.drafters.stream_memory import MAX_ANSWER_TOKENS
from headstart.errors import DraftingError
from headstart.speculation.earnings import Earned, checked_earned

MAX_TOKENS = 1 << 18
"""Of all answers together, their marks included: a snapshot takes about 1 MiB at most."""
MAX_ANSWERS = 4096
_INTEGERS = np.dtype("<i4")


@dataclass(frozen=True, eq=False)
class StreamSnapshot:
    """The answers of one stream, oldest first, and what the planner learnt of it."""

    said: NDArray[np.int32]
    """All answers one after another, each led by its question's mark."""
    lengths: tuple[int, ...]
    """Of each answer, its mark included."""
    said_at_s: tuple[float, ...]
    """When each was said, in seconds since 1970."""
    earned: Earned = field(default_factory=dict)

    @property
    def num_answers(self) -> int:
        return len(self.lengths)

    @property
    def num_tokens(self) -> int:
        """How many tokens, the answers' marks included."""
        return len(self.said)

    def plain(self) -> dict[str, Any]:
        """The form `parse` reads: plain values only."""
        return {
            "said": self.said.astype(_INTEGERS, copy=False).tobytes(),
            "lengths": list(self.lengths),
            "said_at_s": list(self.said_at_s),
            "earned": self.earned,
        }

    @classmethod
    def parse(cls, given: Any) -> Self:
        """Check one that comes from outside; raises `DraftingError` where it cannot be one."""
        if not isinstance(given, Mapping):
            raise _malformed("is no table")
        said, lengths, times = given.get("said"), given.get("lengths"), given.get("said_at_s")
        if not isinstance(said, bytes | bytearray | memoryview) or len(said) % 4:
            raise _malformed("has no tokens")
        if not isinstance(lengths, list | tuple) or not isinstance(times, list | tuple):
            raise _malformed("has no answers")
        if not 0 < len(lengths) == len(times) <= MAX_ANSWERS or len(said) > 4 * MAX_TOKENS:
            raise _malformed("has no answer, or too many")
        if not all(
            type(length) is int and 1 < length <= MAX_ANSWER_TOKENS + 1 for length in lengths
        ):
            raise _malformed("has an answer that is empty or too long")
        if not all(_is_time(time_s) for time_s in times):
            raise _malformed("has an answer that was said at no time")
        tokens = np.frombuffer(said, dtype=_INTEGERS).astype(np.int32)
        if sum(lengths) != len(tokens):
            raise _malformed("has tokens of no answer")
        is_mark = np.zeros(len(tokens), dtype=bool)
        is_mark[np.cumsum([0, *lengths[:-1]])] = True
        if not np.array_equal(tokens < 0, is_mark):
            raise _malformed("has a token that is no id, or an answer to no question")
        earned = checked_earned(given.get("earned", {}))
        return cls(tokens, tuple(lengths), tuple(map(float, times)), earned)

    def without(self, known: "StreamSnapshot") -> "StreamSnapshot":
        """The answers that another does not hold."""
        there = set(known.answers())
        kept = [place for place, answer in enumerate(self.answers()) if answer not in there]
        ends = np.cumsum(self.lengths)
        pieces = [self.said[ends[place] - self.lengths[place] : ends[place]] for place in kept]
        return StreamSnapshot(
            np.concatenate([np.empty(0, dtype=np.int32), *pieces]),
            tuple(self.lengths[place] for place in kept),
            tuple(self.said_at_s[place] for place in kept),
            self.earned,
        )

    def parts(self, max_tokens: int) -> "Iterator[StreamSnapshot]":
        """The same answers in snapshots of so many tokens at most, but of one answer at least."""
        ends = list(accumulate(self.lengths))
        first, begin = 0, 0
        while first < len(ends):
            last = max(bisect_right(ends, begin + max_tokens), first + 1)
            end = ends[last - 1]
            rows = slice(first, last)
            yield StreamSnapshot(self.said[begin:end], self.lengths[rows], self.said_at_s[rows])
            first, begin = last, end

    def answers(self) -> list[bytes]:
        """Each answer with its mark; equal ones are equal."""
        ends = np.cumsum(self.lengths).tolist()
        pairs = zip(ends, self.lengths, strict=True)
        return [self.said[end - length : end].tobytes() for end, length in pairs]


def _is_time(given: object) -> bool:
    return type(given) in (int, float) and math.isfinite(given) and given >= 0  # type: ignore[arg-type, operator]


def _malformed(why: str) -> DraftingError:
    return DraftingError(f"a stream's memory {why}: take one that headstart has written")
