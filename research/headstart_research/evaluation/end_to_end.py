"""What a bench measured by the clock, beside what the same drafters yielded in a replay."""

from collections.abc import Mapping
from typing import Any

from headstart_research.bench.result import BenchResult
from headstart_research.evaluation.contenders import MEMORY, WARM
from headstart_research.evaluation.workload import IN_TURN, ONE_QUESTION

WORKLOADS = {ONE_QUESTION: "fixed", IN_TURN: "rotating"}
METHODS = {
    MEMORY: "memory",
    WARM: "warm",
    "bridge-target": "bridge",
    "bridge-both": "bridge, events",
}
"""A bench's names of these drafters; registered drafters have the same name in both."""
FIGURES = ("end_to_end", "end_to_end_low", "end_to_end_high", "end_to_end_p95")


def end_to_end(
    bench: BenchResult | None, workload: str, drafters: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The drafters' figures of a workload, with the bench's ratios where it measured them."""
    measured = {} if bench is None else bench.summary().get(WORKLOADS[workload], {})
    return {
        name: {**figures, **_ratios(measured.get(METHODS.get(name, name), {}))}
        for name, figures in drafters.items()
    }


def _ratios(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: figures[name] for name in FIGURES if name in figures}
