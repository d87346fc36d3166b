"""Percentiles of measured times."""

from collections.abc import Sequence
from statistics import quantiles


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that so many percent do not exceed, between two of them where it falls there."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[percent - 1]
