"""What is taught: a clip's pictures and some questions with the house's answers, in what order.

Everything about step N follows from the seed and N: a run that goes on from a checkpoint is
taught what the same run, never interrupted, would have been.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.errors import LabError
from headstart.lab.cache import Cache
from headstart.lab.language.facts import Fact
from headstart.lab.language.questions import Question
from headstart.lab.language.styles import Answer


@dataclass(frozen=True)
class Exchange:
    """A question in one of its wordings, and the answer with its facts."""

    question: Question
    wording: str
    answer: Answer


@dataclass(frozen=True, eq=False)
class Lesson:
    """A clip and exchanges about it; pictures are uint8 ``[pictures, height, width, 3]``.

    ``facts`` is all that the house has to say of the clip, whatever is asked.
    """

    pictures: NDArray[np.uint8]
    exchanges: tuple[Exchange, ...]
    facts: tuple[Fact, ...] = ()


class Lessons(Protocol):
    """Clips to learn from, by number. Reading has no effect."""

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
    """Clips of rendered drives, as one of the two models sees and describes them."""

    def __init__(self, cache: Cache, seeds: Sequence[int], house: str) -> None:
        if house not in ("target", "drafter"):
            raise LabError(f"{house} is not one of the pair; choose target or drafter")
        self.cache, self.house = cache, house
        self._places = [(seed, second) for seed in seeds for second in cache.recipe.seconds]
        if missing := [seed for seed in seeds if not cache.has(seed)]:
            raise LabError(
                f"{len(missing)} of {len(seeds)} drives are not in {cache.directory};"
                " render them with headstart lab data"
            )

    def __len__(self) -> int:
        """Clips of all drives."""
        return len(self._places)

    def place(self, number: int) -> tuple[int, int]:
        """The drive's seed, and which of its seconds."""
        return self._places[number]

    def spread(self, num: int) -> list[int]:
        """The numbers of ``num`` clips, or of all if there are fewer, evenly spread."""
        return evenly(len(self), num)

    def lesson(self, number: int, random: Random, num_questions: int) -> Lesson:
        """Clip ``number`` with that many different questions, drawn and worded by ``random``."""
        clip = self.cache.clip(*self.place(number))
        pictures = clip.frames if self.house == "target" else clip.slices
        answers = clip.target if self.house == "target" else clip.drafter
        asked = random.sample(list(Question), min(num_questions, len(Question)))
        return Lesson(
            pictures,
            tuple(Exchange(each, random.choice(each.value), answers[each]) for each in asked),
            # Each once, in the order in which the answers state them.
            tuple(dict.fromkeys(fact for answer in answers.values() for fact in answer.facts)),
        )


def evenly(total: int, num: int) -> list[int]:
    """``num`` numbers below ``total``, evenly spread; all of them if there are fewer."""
    num = min(num, total)
    return [place * total // num for place in range(num)]


def drawn(step: int, batch_size: int, num_lessons: int, seed: int) -> Iterator[tuple[int, Random]]:
    """A step's lessons, each with its own chance; all come once before any comes again."""
    for place in range(step * batch_size, (step + 1) * batch_size):
        epoch, offset = divmod(place, num_lessons)
        yield _order(num_lessons, seed, epoch)[offset], Random(f"{seed}/{epoch}/{offset}")


@lru_cache(maxsize=2)
def _order(num: int, seed: int, epoch: int) -> tuple[int, ...]:
    order = list(range(num))
    Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order)
