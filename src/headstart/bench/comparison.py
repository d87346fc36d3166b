"""Two results side by side: what became faster or slower, and whether that can be told."""

from dataclasses import dataclass

from headstart.bench.intervals import Ratio
from headstart.bench.result import BenchResult
from headstart.errors import BenchError


@dataclass(frozen=True, slots=True)
class Change:
    """One method in one workload, by its speed-up over bare vLLM in each of the two runs."""

    workload: str
    method: str
    before: Ratio
    after: Ratio

    @property
    def is_regression(self) -> bool:
        """Slower, and by more than both intervals allow."""
        return self.after.high < self.before.low

    @property
    def is_gain(self) -> bool:
        """Faster, and by more than both intervals allow."""
        return self.after.low > self.before.high


def compare(before: BenchResult, after: BenchResult) -> list[Change]:
    """Whatever both have measured, in the order of the second.

    Ratios over each run's own bare vLLM are compared, so the runs may be of different days.
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
        raise BenchError("the two results have no workload and method in common")
    return changes
