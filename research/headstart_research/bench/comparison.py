"""Compares two results: which methods became faster or slower by more than their intervals."""

from dataclasses import dataclass

from headstart.errors import BenchError
from headstart_research.bench.intervals import Ratio
from headstart_research.bench.result import BenchResult


@dataclass(frozen=True, slots=True)
class Change:
    """The speed-ups of one method in one workload, in two results."""

    workload: str
    method: str
    before: Ratio
    after: Ratio

    @property
    def is_regression(self) -> bool:
        """Whether it became slower and the intervals do not overlap."""
        return self.after.high < self.before.low

    @property
    def is_gain(self) -> bool:
        """Whether it became faster and the intervals do not overlap."""
        return self.after.low > self.before.high


def compare(before: BenchResult, after: BenchResult) -> list[Change]:
    """Compare what both results measured, in the order of the second.

    The speed-ups are over each result's own bare vLLM, so the two may be of different days.
    """
    known = set(before.measured())
    changes = [
        Change(
            workload,
            method,
            before.ratio(workload, method, "end_to_end_s"),
            after.ratio(workload, method, "end_to_end_s"),
        )
        for workload, method in after.measured()
        if (workload, method) in known
    ]
    if not changes:
        raise BenchError(
            "the two results have no workload and method in common: measure one that both have"
        )
    return changes
