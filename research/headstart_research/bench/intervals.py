"""Ratios of medians with 95% intervals, by bootstrap over pairs of answers asked in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from headstart.errors import BenchError

NUM_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Ratio:
    """A speed-up and its 95% interval; above one where the second of two is faster."""

    value: float
    low: float
    high: float


def ratio_of_medians(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """How many times faster ``after`` is; the bootstrap draws the two as pairs."""
    if not before or len(before) != len(after):
        raise BenchError("a ratio needs pairs: as many samples with a method as without it")
    pairs = np.array([before, after], dtype=np.float64)
    chosen = np.random.default_rng(0).integers(0, len(before), (NUM_RESAMPLES, len(before)))
    medians = np.median(pairs[:, chosen], axis=2)
    low, high = np.quantile(medians[0] / medians[1], [0.025, 0.975])
    return Ratio(median(before) / median(after), float(low), float(high))
