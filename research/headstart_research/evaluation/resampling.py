"""Tokens a pass with 95% intervals, by bootstrap over answers or over whole streams.

Answers of a stream are alike, so an interval over answers is too narrow for a claim about streams
that were not measured; the one over streams is the honest one where there are enough of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

NUM_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """95% of the resampled values lie in it."""

    low: float
    high: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Self:
        low, high = np.quantile(values, [0.025, 0.975])
        return cls(float(low), float(high))


@dataclass(frozen=True, eq=False)
class Tally:
    """Tokens and passes of units, which are answers or streams."""

    tokens: NDArray[np.int64]
    passes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def tokens_per_pass(self) -> float:
        """All tokens over all passes."""
        return float(self.tokens.sum() / self.passes.sum())

    def by(self, groups: NDArray[np.int64]) -> Self:
        """The same by larger units; ``groups`` numbers the one that each unit belongs to."""
        num = int(groups.max()) + 1
        tokens, passes = np.zeros(num, np.int64), np.zeros(num, np.int64)
        np.add.at(tokens, groups, self.tokens)
        np.add.at(passes, groups, self.passes)
        return type(self)(tokens, passes)

    def resampled(self) -> NDArray[np.float64]:
        """Tokens a pass of units drawn with replacement, again and again.

        Tallies of as many units draw the same ones, so the differences of two are paired.
        """
        rng, num = np.random.default_rng(0), len(self)
        drawn = (rng.integers(0, num, num) for _ in range(NUM_RESAMPLES))
        return np.array([self.tokens[some].sum() / self.passes[some].sum() for some in drawn])


def interval(tally: Tally) -> Interval | None:
    """Of the tokens a pass; None of a single unit, which says nothing of others."""
    return Interval.of(tally.resampled()) if len(tally) > 1 else None


def interval_of_difference(pairs: Sequence[tuple[Tally, Tally]]) -> Interval | None:
    """Of the tokens a pass of a pair's first over its second's, all on the same units.

    Of several pairs it is the mean of their differences, each on the same draws.
    """
    if len(pairs[0][0]) < 2:
        return None
    return Interval.of(np.mean([more.resampled() - less.resampled() for more, less in pairs], 0))
