"""Ratios of medians with their uncertainty: a bootstrap over pairs asked side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from headstart.errors import BenchError

NUM_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Ratio:
    """Above one where the second of two is faster, with a 95% interval."""

    value: float
    low: float
    high: float


def ratio_of_medians(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """How many times faster ``after`` is; the two are pairs, and are drawn again as pairs."""
    if not before or len(before) != len(after):
        raise BenchError("a ratio needs pairs: as many samples with a method as without it")
    pairs = np.array([before, after], dtype=np.float64)
    chosen = np.random.default_rng(0).integers(0, len(before), (NUM_RESAMPLES, len(before)))
    medians = np.median(pairs[:, chosen], axis=2)
    low, high = np.quantile(medians[0] / medians[1], [0.025, 0.975])
    return Ratio(median(before) / median(after), float(low), float(high))


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share))
