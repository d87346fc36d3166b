"""The words a bridge can say: those the target was seen to use, numbered anew.

A target has 32,000 or 150,000 ids and uses a few thousand of them on its cameras. With a small
vocabulary the last matrix of a bridge is small, too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import TrainingError

Ids = NDArray[np.int64]

NUM_MARKS = 5
"""Beside the words a bridge reads these; their ids follow those of the words."""
UNKNOWN, ANSWER, SAME, OTHER, QUESTION = range(NUM_MARKS)
"""A word it cannot say; the begin of the answer, of an earlier answer to the same question, of one
to another question, and of the question."""


@dataclass(frozen=True, eq=False)
class DraftVocabulary:
    """Ids of the target by the bridge's own, and back."""

    target_ids: Ids
    """Ascending; the place in it is the bridge's own id."""
    target_size: int
    own_ids: NDArray[np.int32]
    """By the target's id: the own id, or that of the mark `UNKNOWN`."""

    @classmethod
    def of(cls, target_ids: Iterable[int], target_size: int) -> Self:
        """Of these ids of a target that has so many."""
        known = np.unique(np.fromiter(target_ids, np.int64))
        if not len(known) or known[0] < 0 or known[-1] >= target_size:
            raise TrainingError(
                f"a vocabulary holds some ids between 0 and {target_size - 1}: check that the"
                " records are of this target"
            )
        own = np.full(target_size, len(known) + UNKNOWN, np.int32)
        own[known] = np.arange(len(known))
        return cls(known, target_size, own)

    @classmethod
    def used_in(cls, answers: Iterable[Sequence[int]], target_size: int, max_size: int) -> Self:
        counts = Counter(token for answer in answers for token in answer)
        return cls.of([token for token, _ in counts.most_common(max_size)], target_size)

    def __len__(self) -> int:
        return len(self.target_ids)

    def mark(self, which: int) -> int:
        return len(self) + which

    def own(self, tokens: Sequence[int]) -> NDArray[np.int32]:
        """The own ids of the target's; ids that no target has are unknown too."""
        given = np.asarray(tokens, np.int64)
        inside = (given >= 0) & (given < self.target_size)
        own: NDArray[np.int32] = self.own_ids[np.where(inside, given, 0)]
        own[~inside] = self.mark(UNKNOWN)
        return own
