"""The weights of one tenant's ranker, and the lessons from which they are learnt."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from headstart_research.ranker.answer_log import AnswerLog
from headstart_research.ranker.arrays import Arrays
from headstart_research.ranker.following import learn
from headstart_research.ranker.network import NUM_WEIGHTS, first_weights

REVIEWS = 6  # earlier answers that are learnt from again with each new one
RATE, LEAST_RATE = 0.004, 0.001
SETTLING_STEPS = 4000  # until the rate has halved
MAX_LESSONS = 8  # that wait; of more the oldest is left out, and may be reviewed


@dataclass(frozen=True, slots=True)
class Lesson:
    """The answers there were when the last of them was complete."""

    arrays: Arrays
    num_answers: int


class Learner:
    """Learns weights from lessons, in one thread, while others read ``weights``.

    Those are replaced as a whole when a lesson is over, and never changed.
    """

    def __init__(self, seed: int = 0) -> None:
        self.weights = first_weights(seed)
        self._seed = seed
        self._lessons: deque[Lesson] = deque(maxlen=MAX_LESSONS)
        self._bites: Iterator[None] = iter(())
        self._restart()

    @property
    def num_bytes(self) -> int:
        return 4 * self.weights.nbytes

    @property
    def has_lessons(self) -> bool:
        return bool(self._lessons)

    def give(self, log: AnswerLog) -> None:
        """An answer was added to the log. May be called from another thread than `take_bite`."""
        self._lessons.append(Lesson(log.arrays, log.num_answers))

    def take_bite(self) -> bool:
        """Learn from one answer, a few milliseconds; False where nothing is left to learn."""
        for _ in self._bites:
            return True
        try:
            lesson = self._lessons.popleft()
        except IndexError:
            self._bites = iter(())  # unlike a generator that has ended, it can be copied
            return False
        self._bites = self._study(lesson)
        return True

    def _study(self, lesson: Lesson) -> Iterator[None]:
        newest = lesson.num_answers - 1
        for review in range(REVIEWS + 1 if newest else 0):
            number = self._rng.randrange(1, newest + 1) if review else newest
            self._learn(lesson, number)
            yield
        if np.isfinite(self._draft).all():
            self.weights = self._draft.copy()
        else:
            self._restart()

    def _learn(self, lesson: Lesson, number: int) -> None:
        rate = max(LEAST_RATE, RATE * SETTLING_STEPS / (SETTLING_STEPS + self._num_steps))
        num_choices = learn(
            lesson.arrays,
            number,
            lesson.num_answers,
            self._draft,
            self._means,
            self._squares,
            self._num_steps + 1,
            rate,
        )
        self._num_steps += num_choices > 0

    def _restart(self) -> None:
        self._draft: NDArray[np.float32] = self.weights.copy()
        self._means = np.zeros(NUM_WEIGHTS, dtype=np.float32)
        self._squares = np.zeros(NUM_WEIGHTS, dtype=np.float32)
        self._num_steps = 0
        self._rng = Random(self._seed)
