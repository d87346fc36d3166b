"""The last answers of one tenant, bounded, for the ranker to quote and to learn from."""

import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.drafters.stream_memory import question_mark
from headstart_research.ranker.arrays import (
    CONTEXT_LENGTHS,
    NUM_COMMON,
    NUM_LENGTHS,
    SPREAD_SLOTS,
    Arrays,
    append,
    append_all,
)

MAX_ANSWERS = 2048
MAX_TOKENS = 1 << 17  # of all answers
MAX_ANSWER_TOKENS = 512  # of one answer, what follows is not remembered
FIRST_TOKENS = 1 << 12
COMMON_AFTER = 16  # answers: then the common tokens are chosen, once
KEPT_SHARE = 0.75  # of the answers, when there is no more room


def as_said(question: str, words: Sequence[int]) -> NDArray[np.int32]:
    """An answer, or how it begins, led by a stand-in for its question; no token id is negative.

    Of a long one the end. Raises where a word is no number of 32 bits.
    """
    if len(words) > MAX_ANSWER_TOKENS:
        return np.array(words[-MAX_ANSWER_TOKENS:], dtype=np.int32)
    return np.array([question_mark(question), *words], dtype=np.int32)


class AnswerLog:
    """Answers of one tenant's streams, in order. Not thread-safe; its arrays may be read by all.

    Where arrays are too small, larger ones take their place, and the old ones stay as they were.
    """

    def __init__(self) -> None:
        self.num_answers = 0
        self._factors = np.array(
            [secrets.randbits(64) | 1 for _ in range(CONTEXT_LENGTHS[0])], dtype=np.uint64
        )
        self._common = np.full(NUM_COMMON, -1, dtype=np.int32)
        self._streams: dict[str, int] = {}
        self._turns: dict[int, int] = {}
        self._next_stream = 0
        self.arrays = self._empty(FIRST_TOKENS)

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def stream(self, name: str) -> tuple[int, int]:
        """The number of a stream, and how many answers it has had; -1 and 0 of a new one."""
        number = self._streams.get(name, -1)
        return number, self._turns.get(number, 0)

    def learn(self, stream: str, question: str, answer: Sequence[int]) -> None:
        """Add an answer; the oldest go when there are too many."""
        said = as_said(question, answer[:MAX_ANSWER_TOKENS])
        self._make_room(len(said))
        number = self._streams.get(stream, -1)
        if number < 0:
            number = self._streams[stream] = self._next_stream
            self._next_stream += 1
        turn = self._turns.get(number, 0)
        append(self.arrays, said, self.num_answers, number, turn)
        self._turns[number] = turn + 1
        self.num_answers += 1
        if self.num_answers == COMMON_AFTER and self._common[0] < 0:
            self._choose_common()

    def _make_room(self, num_tokens: int) -> None:
        while True:
            needed = int(self.arrays.starts[self.num_answers]) + num_tokens
            capacity = len(self.arrays.tokens)
            if self.num_answers == MAX_ANSWERS or needed > MAX_TOKENS:
                self._rebuild(int(KEPT_SHARE * self.num_answers), capacity)
            elif needed > capacity:
                self._rebuild(self.num_answers, 2 * capacity)
            else:
                return

    def _choose_common(self) -> None:
        tokens = self.arrays.tokens[: self.arrays.starts[self.num_answers]]
        words, counts = np.unique(tokens[tokens >= 0], return_counts=True)
        chosen = words[np.argsort(-counts, kind="stable")[:NUM_COMMON]]
        self._common = np.full(NUM_COMMON, -1, dtype=np.int32)
        self._common[: len(chosen)] = chosen
        self._rebuild(self.num_answers, len(self.arrays.tokens))

    def _rebuild(self, num_kept: int, capacity: int) -> None:
        old, first = self.arrays, self.num_answers - num_kept
        self.arrays = self._empty(capacity)
        append_all(self.arrays, old, first, self.num_answers)
        self.num_answers = num_kept
        left = set(self.arrays.streams[:num_kept].tolist())
        self._streams = {name: number for name, number in self._streams.items() if number in left}
        self._turns = {number: turn for number, turn in self._turns.items() if number in left}

    def _empty(self, capacity: int) -> Arrays:
        return Arrays(
            tokens=np.empty(capacity, dtype=np.int32),
            answers=np.empty(capacity, dtype=np.int32),
            counts=np.empty((capacity, NUM_COMMON), dtype=np.uint8),
            back=np.empty((NUM_LENGTHS, capacity), dtype=np.int32),
            heads=np.full((NUM_LENGTHS, 2 * capacity), -1, dtype=np.int32),
            factors=self._factors,
            starts=np.zeros(MAX_ANSWERS + 1, dtype=np.int32),
            streams=np.empty(MAX_ANSWERS, dtype=np.int32),
            turns=np.empty(MAX_ANSWERS, dtype=np.int32),
            common=self._common,
            spread=np.zeros(SPREAD_SLOTS, dtype=np.int32),
        )
