"""The earlier answers of a stream, or of several, and quotations from them.

One rule: copy what followed the longest match in those answers, of equal matches the most recent;
where the copy ends, look again. Before the first token the match is the question, so the draft is
the last answer to it.
"""

import hashlib
import math
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.drafters.contexts import Contexts, hash_endings
from headstart.speculation.draft import Match

_MARK_BYTES = 4
CONTEXT_LENGTHS = (8, 4, 2, 1)
"""Of these many tokens the places of occurrence are kept; deepest first."""
MAX_PLACES = 8  # of one context, the most recent ones; more found nothing better in replays
MAX_MATCH = 32  # beyond this a match is as good as any
MAX_PIECES = 8  # copied into one draft: bounds the time of a proposal
MAX_ANSWER_TOKENS = 1024  # of one answer, what follows is not remembered
TOKENS_PER_SLOT = 2  # of a table of contexts, before it is made larger
MAX_REBUILT = 8192  # tokens: beyond, tables grow without being made anew, so that none waits


def question_mark(question: str) -> int:
    """Of 30 bits, the same in every process, and negative as no token id is.

    The same everywhere, because memories travel between engines. Two questions of one mark are
    taken for the same one, which costs a wrong draft.
    """
    digest = hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=_MARK_BYTES)
    return -1 - (int.from_bytes(digest.digest()) & 0x3FFFFFFF)


class StreamMemory:
    """The last answers of one stream, each led by its question's mark. Not thread-safe.

    Answers stand one after another in a log; a place is a token's number in it, counted from the
    first ever learnt. Forgotten ones are passed over, and cut off when they are half of the log.
    """

    __slots__ = (
        "_contexts",
        "_first",
        "_log",
        "_max_answers",
        "_max_tokens",
        "_said_at_s",
        "_starts",
        "num_learnt",
    )

    def __init__(self, max_answers: int, max_tokens: int | None = None) -> None:
        self._max_answers, self._max_tokens = max_answers, max_tokens
        self.num_learnt = 0
        self._log = array("i")
        self._first = 0  # the place of the log's first token
        self._starts = array("q")  # of the answers remembered
        self._said_at_s = array("d")  # likewise
        self._contexts = Contexts(CONTEXT_LENGTHS)

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def num_bytes(self) -> int:
        own = sum(map(sys.getsizeof, (self, self._log, self._starts, self._said_at_s)))
        return own + self._contexts.num_bytes

    @property
    def said_between_s(self) -> tuple[float, float]:
        """When the oldest and the newest answer were said, in seconds since 1970."""
        if not self._said_at_s:
            return math.inf, -math.inf
        times = np.frombuffer(self._said_at_s)
        return float(times.min()), float(times.max())

    def learn(self, question: str, answer: Sequence[int], said_at_s: float = 0.0) -> None:
        """Remember an answer; the oldest goes when there are too many."""
        said = np.array([question_mark(question), *answer[:MAX_ANSWER_TOKENS]], dtype=np.int32)
        self.extend(said, [len(said)], [said_at_s])

    def extend(
        self, said: NDArray[np.int32], lengths: Sequence[int], said_at_s: Sequence[float]
    ) -> None:
        """Remember answers that stand one after another, each led by its question's mark."""
        start = self._first + len(self._log)
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.int64)
        self._starts.frombytes((start + starts).tobytes())
        self._said_at_s.extend(said_at_s)
        self._log.frombytes(said.tobytes())
        self._contexts.extend(said, _depths(starts, len(said)), start)
        self.num_learnt += len(lengths)
        if len(self) > self._max_answers:
            self.forget(len(self) - self._max_answers)
        if self._max_tokens is not None and self._num_tokens > self._max_tokens:
            end = self._first + len(self._log)
            self.forget(bisect_left(self._starts, end - self._max_tokens))
        while self._num_tokens > TOKENS_PER_SLOT * self._contexts.num_slots:
            if self._num_tokens <= MAX_REBUILT:
                self.compact()
            else:
                self._contexts.widen()

    def newest(self, max_tokens: int) -> tuple[NDArray[np.int32], list[int], list[float]]:
        """What `extend` takes, of the newest answers that together have no more tokens."""
        end = self._first + len(self._log)
        return self._since(bisect_left(self._starts, end - max_tokens))

    def latest(self, num_answers: int) -> tuple[NDArray[np.int32], list[int], list[float]]:
        """The same of so many answers."""
        return self._since(max(0, len(self) - num_answers))

    def _since(self, first: int) -> tuple[NDArray[np.int32], list[int], list[float]]:
        end = self._first + len(self._log)
        starts = self._starts[first:]
        lengths = np.diff(np.array(starts, dtype=np.int64), append=end).tolist()
        said = self._log[starts[0] - self._first :] if starts else array("i")
        return np.array(said, dtype=np.int32), lengths, self._said_at_s[first:].tolist()

    def forget(self, num_answers: int) -> None:
        del self._starts[:num_answers]
        del self._said_at_s[:num_answers]
        if 2 * self._num_tokens < len(self._log):
            self._cut()

    def forget_before(self, time_s: float) -> bool:
        """Forget what was said before a time, and what was learnt before that; whether any was.

        Answers from elsewhere may be older than those learnt before them.
        """
        old = np.flatnonzero(np.array(self._said_at_s) < time_s)
        if not len(old):
            return False
        self.forget(int(old[-1]) + 1)
        self._cut()
        return True

    def compact(self) -> None:
        """Take no more room than the answers need that are remembered."""
        self._cut()
        tokens = np.array(self._log, dtype=np.int32)
        starts = np.array(self._starts, dtype=np.int64) - self._first
        self._contexts.rebuild(tokens, _depths(starts, len(tokens)), self._first)

    def longest_match(
        self, said: "array[int]", hashes: list[int], longer_than: int
    ) -> tuple[int, int] | None:
        """Of the longest known context's latest places, the one where most of ``said`` matches.

        The place of what followed there, and how many tokens match. Only contexts of more than
        ``longer_than`` tokens are looked at. ``hashes`` are the `hash_endings` of ``said``.
        """
        if not self._starts:
            return None
        log, oldest, last = self._log, self._starts[0] - self._first, said[-1]
        most = min(len(said), MAX_MATCH)
        for table in self._contexts.tables:
            context = table.length
            if context > most:
                continue
            if context <= longer_than:
                break
            stop = table.latest(hashes) - self._first
            back, ending, num_places = table.back, said[-context:], 0
            best, longest = None, context - 1
            beyond = ending[0]  # what a longer match must begin with
            while stop >= oldest:
                # Where it is not equal, only the hashes are. The last token mostly tells.
                if log[stop - 1] == last and log[stop - context : stop] == ending:
                    num_places += 1
                    # The mark that an answer begins with is like no other token, and ends a match.
                    if stop > longest and log[stop - longest - 1] == beyond:
                        length, reach = context, most if stop > most else stop
                        while length < reach and log[stop - length - 1] == said[-length - 1]:
                            length += 1
                        if length > longest:
                            best, longest = stop, length
                            if longest == most:
                                break
                            beyond = said[-longest - 1]
                    if num_places == MAX_PLACES:
                        break
                distance = back[stop]
                if not distance:
                    break
                stop -= distance
            if best is not None:
                return best + self._first, longest
            most = context - 1  # so many tokens are nowhere: a shorter match ends the search
        return None

    def following(self, place: int, max_tokens: int) -> "array[int]":
        """The rest of the answer that ``place`` is in."""
        stop = min(place + max_tokens, self._end(place))
        return self._log[place - self._first : stop - self._first]

    def _end(self, place: int) -> int:
        """Where the answer ends that ``place`` is in."""
        following = bisect_right(self._starts, place)
        if following < len(self._starts):
            return self._starts[following]
        return self._first + len(self._log)

    @property
    def _num_tokens(self) -> int:
        return self._first + len(self._log) - self._starts[0] if self._starts else 0

    def _cut(self) -> None:
        num_forgotten = len(self._log) - self._num_tokens
        del self._log[:num_forgotten]
        self._contexts.cut(num_forgotten)
        self._first += num_forgotten


def quote(
    memories: Sequence[StreamMemory], question: str, confirmed: Sequence[int], max_tokens: int
) -> Match:
    """Copy, piece after piece, what followed the longest recent match.

    The first memory comes first: of a further one only a context is looked up that is longer than
    the match before it.
    """
    # No match is longer, so the words further back cannot matter; but the mark must be seen.
    said = array("i", confirmed[-MAX_MATCH:])
    if len(said) < MAX_MATCH:
        said.insert(0, question_mark(question))
    known, first_match = len(said), 0
    for _ in range(MAX_PIECES):
        missing = max_tokens - (len(said) - known)
        if missing <= 0:
            break
        hashes, longest, piece = hash_endings(said), 0, None
        for memory in memories:
            found = memory.longest_match(said, hashes, longest)
            if found is not None:
                (place, longest), piece = found, memory
        if piece is None:
            break
        first_match = first_match or longest
        said += piece.following(place, missing)
    return Match(said[known:], first_match)


def _depths(starts: NDArray[np.int64], num_tokens: int) -> NDArray[np.int64]:
    """Of each token, how many come before it in its own answer."""
    return np.arange(num_tokens) - np.repeat(starts, np.diff(starts, append=num_tokens))
