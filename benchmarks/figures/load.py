"""Tables of load: waits where questions arrive by themselves, and where cameras ask again at once.

Ratios are to bare vLLM beside a method in the same run; above 1 is faster. Bare vLLM's own rows are
of all its answers.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from statistics import median

from benchmarks.figures.bench import file_of
from benchmarks.figures.results import markdown, path_of
from headstart_research.bench.result import BARE, BenchResult, PlayedLoad

OPEN_RUN, OPEN = "open-16", "open-16"
CLOSED_RUN, CLOSED = "closed-16", "streams-16"
PERCENTS = (50, 95, 99)
WAITS = tuple(f"p{percent}, s" for percent in PERCENTS)
RATIOS = tuple(f"p{percent} ratio" for percent in PERCENTS)
FIRST = "first token, p50, s"


@cache
def kept(run: str) -> BenchResult:
    """The newest result of a run."""
    return BenchResult.read(path_of(file_of(run)))


def methods_in(result: BenchResult, workloads: Iterable[str]) -> list[str]:
    """Bare vLLM and the methods that were measured in any of the workloads, in order."""
    wanted = set(workloads)
    found = {method for workload, method in result.measured() if workload in wanted}
    return [BARE, *(method for method in result.methods if method in found)]


def loads_of(result: BenchResult, workload: str) -> list[PlayedLoad]:
    """The loads of an open workload, in the order they were played."""
    return [load for load in result.loads if load.workload == workload]


def load(result: BenchResult, workload: str) -> str:
    """Every load of an open workload, every method."""
    loads = loads_of(result, workload)
    methods = methods_in(result, (load.name for load in loads))
    rows = [
        (
            load.name.removeprefix(workload).strip(),
            f"{load.rate:.2f}",
            method,
            *waits(result, load.name, method),
            first_token(result, load.name, method),
            f"{answers_per_s(result, load.name, method):.2f}",
            f"{len(result.settled(load.name, method))}",
        )
        for load in loads
        for method in methods
    ]
    headings = ("load", "questions a second", "method", *WAITS, *RATIOS)
    return markdown((*headings, FIRST, "answers a second", "answers"), rows)


def closed(result: BenchResult, workload: str) -> str:
    """The same cameras in a closed loop."""
    rows = [
        (
            method,
            *waits(result, workload, method),
            first_token(result, workload, method),
            "" if method == BARE else f"{result.throughput(workload, method):.2f}",
            f"{len(result.settled(workload, method))}",
        )
        for method in methods_in(result, [workload])
    ]
    return markdown(("method", *WAITS, *RATIOS, FIRST, "throughput", "answers"), rows)


def goodputs(result: BenchResult, workload: str) -> str:
    """The highest rate that each method answers in time."""
    within_s = result.limit_s(workload)
    highest = max(load.rate for load in result.random_loads(workload, BARE))
    methods = methods_in(result, (load.name for load in loads_of(result, workload)))
    rows = [
        (method, _rate(result.goodput(workload, method, within_s), highest)) for method in methods
    ]
    return markdown(("method", f"questions a second, 95% within {within_s:.1f} s"), rows)


def waits(result: BenchResult, workload: str, method: str) -> Sequence[str]:
    """Percentiles in seconds, and as ratios to bare vLLM beside the method."""
    own = [result.percentile_s(workload, method, percent) for percent in PERCENTS]
    shown = [f"{seconds:.2f}" for seconds in own]
    if method == BARE:
        return [*shown, *[""] * len(PERCENTS)]
    bare = [result.percentile_s(workload, BARE, percent, method) for percent in PERCENTS]
    return [*shown, *(f"{b / o:.2f}" for b, o in zip(bare, own, strict=True))]


def first_token(result: BenchResult, workload: str, method: str) -> str:
    """The median wait for the first word."""
    return f"{median(s.first_token_s for s in result.settled(workload, method)):.2f}"


def answers_per_s(result: BenchResult, workload: str, method: str) -> float:
    """Counted answers over the time from their first arrival to their last answer."""
    blocks = [b for b in result.blocks if (b.workload, b.method) == (workload, method)]
    return len(result.settled(workload, method)) / sum(block.seconds for block in blocks)


def _rate(rate: float | None, highest: float) -> str:
    if rate is None:
        return "none that was played"
    return f"{rate:.2f}, the highest that was played" if rate == highest else f"{rate:.2f}"


TABLES: dict[str, Callable[[], str]] = {
    "load": lambda: load(kept(OPEN_RUN), OPEN),
    "load-goodput": lambda: goodputs(kept(OPEN_RUN), OPEN),
    "load-closed": lambda: closed(kept(CLOSED_RUN), CLOSED),
}
