"""The training data: clips, each with questions and their reference answers, and their order.

The data of step N depends on the seed and N alone, so a resumed run sees the same data as one that
was never interrupted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart_lab.cache import Cache
from headstart_lab.errors import LabError
from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import Answer


@dataclass(frozen=True)
class Exchange:
    """A question in one of its wordings, and the answer with its facts."""

    question: Question
    wording: str
    answer: Answer


@dataclass(frozen=True, eq=False)
class Lesson:
    """A clip and exchanges about it; pictures are uint8 ``[pictures, height, width, 3]``.

    ``facts`` are the facts of the reference answers to all questions, also of those not asked here.
    """

    pictures: NDArray[np.uint8]
    exchanges: tuple[Exchange, ...]
    facts: tuple[Fact, ...] = ()


class Lessons(Protocol):
    """A dataset of clips, by number. Reading has no effect."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def lesson(self, number: int, random: Random, num_questions: int) -> Lesson:
        """Clip ``number`` with that many different questions, drawn and worded by ``random``."""
        ...

    def spread(self, num: int) -> list[int]:
        """The numbers of ``num`` clips, or of all if there are fewer, evenly spread."""
        ...


class CachedLessons:
    """Clips of rendered drives, with the pictures and reference answers of one model."""

    def __init__(self, cache: Cache, seeds: Sequence[int], model: str) -> None:
        if model not in ("target", "drafter"):
            raise LabError(f"{model} is not one of the pair; choose target or drafter")
        self.cache, self.model = cache, model
        self._places = [(seed, second) for seed in seeds for second in cache.recipe.seconds]
        if missing := [seed for seed in seeds if not cache.has(seed)]:
            raise LabError(
                f"{len(missing)} of {len(seeds)} drives are not in {cache.directory};"
                " render them with headstart lab data"
            )

    def __len__(self) -> int:
        """The number of clips in all drives."""
        return len(self._places)

    def place(self, number: int) -> tuple[int, int]:
        """The seed of the clip's drive, and the second of that drive."""
        return self._places[number]

    def spread(self, num: int) -> list[int]:
        """The numbers of ``num`` clips, or of all if there are fewer, evenly spread."""
        return evenly(len(self), num)

    def lesson(self, number: int, random: Random, num_questions: int) -> Lesson:
        """Clip ``number`` with that many different questions, drawn and worded by ``random``."""
        clip = self.cache.clip(*self.place(number))
        pictures = clip.frames if self.model == "target" else clip.slices
        answers = clip.target if self.model == "target" else clip.drafter
        asked = random.sample(list(Question), min(num_questions, len(Question)))
        return Lesson(
            pictures,
            tuple(Exchange(each, random.choice(each.value), answers[each]) for each in asked),
            # Each fact once, in the order in which the answers state them.
            tuple(dict.fromkeys(fact for answer in answers.values() for fact in answer.facts)),
        )


def evenly(total: int, num: int) -> list[int]:
    """``num`` numbers below ``total``, evenly spread; all of them if there are fewer."""
    num = min(num, total)
    return [place * total // num for place in range(num)]


def drawn(step: int, batch_size: int, num_lessons: int, seed: int) -> Iterator[tuple[int, Random]]:
    """The lessons of a step, each with its own random generator; every epoch takes all of them."""
    for place in range(step * batch_size, (step + 1) * batch_size):
        epoch, offset = divmod(place, num_lessons)
        yield _order(num_lessons, seed, epoch)[offset], Random(f"{seed}/{epoch}/{offset}")


@lru_cache(maxsize=2)
def _order(num: int, seed: int, epoch: int) -> tuple[int, ...]:
    order = list(range(num))
    Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order)
