"""Goodput: the highest rate at which questions arrived and 95% of the answers came within a limit.

Only rates that were played count, and only questions that arrived singly.
"""

from headstart_research.bench.result import BARE, BenchResult

LIMIT_FACTOR = 2.0


def limit_s(result: BenchResult, workload: str) -> float:
    """Twice the 95th percentile of bare vLLM at the lowest rate that was played."""
    lowest = result.random_loads(workload, BARE)[0]
    return LIMIT_FACTOR * result.percentile_s(lowest.name, BARE, 95)


def goodput(result: BenchResult, workload: str, method: str, within_s: float) -> float | None:
    """Questions a second; None if the limit was exceeded at every rate."""
    held = [
        load.rate
        for load in result.random_loads(workload, method)
        if result.percentile_s(load.name, method, 95) <= within_s
    ]
    return max(held, default=None)
