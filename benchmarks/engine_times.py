"""How long an engine's prefill and its decode steps take, for one question at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from headstart_lab.errors import LabError

from headstart.answers.answer import Answer
from headstart.answers.timeline import Stage


@dataclass(frozen=True)
class Spread:
    """Milliseconds: the median and the two outer deciles."""

    median: float
    p10: float
    p90: float
    num: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of two or more values."""
        if len(values) < 2:
            raise LabError(f"{len(values)} answers have no spread; ask about at least 2 clips")
        deciles = quantiles(values, n=10, method="inclusive")
        return cls(median(values), deciles[0], deciles[-1], len(values))


@dataclass(frozen=True)
class EngineTimes:
    """``prefill`` lasts from scheduling to the first token, and includes the vision tower.

    ``step`` is the time of one decoded token, the mean over an answer.
    """

    prefill: Spread
    vision: Spread
    step: Spread

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> "EngineTimes":
        """From the timelines of answers that were asked one after the other."""
        cached = [answer for answer in answers if answer.num_cached_tokens]
        if cached:
            raise LabError("part of a prompt was cached: measure without prefix caching")
        long_enough = [answer for answer in answers if len(answer.token_ids) > 1]
        return cls(
            prefill=Spread.of([_ms(a, Stage.VISION) + _ms(a, Stage.PREFILL) for a in answers]),
            vision=Spread.of([_ms(answer, Stage.VISION) for answer in answers]),
            step=Spread.of(
                [_ms(a, Stage.DECODE) / (len(a.token_ids) - 1) for a in long_enough],
            ),
        )


def _ms(answer: Answer, stage: Stage) -> float:
    return answer.timeline.duration_s(stage) * 1e3
