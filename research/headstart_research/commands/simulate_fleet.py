"""The simulation that `headstart plan --fleet FILE --simulate SECONDS` shows."""

from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from headstart.errors import PlanningError
from headstart_research.commands.fleet_file import FleetFile
from headstart_research.commands.tables import figures_table
from headstart_research.planning.fleet.outcome import Fate, Outcome
from headstart_research.planning.fleet.placing import Ring
from headstart_research.planning.fleet.plan import FleetPlan
from headstart_research.planning.fleet.sampling import sampled
from headstart_research.planning.fleet.size import FleetSize

NUM_USUAL = 48
"""Engines that are simulated by their passes, besides the fullest, the killed one and its heirs."""


def simulated(fleet: FleetFile, size: FleetSize, seconds: float, out: Console) -> dict[str, Any]:
    """Simulate a fleet of this size and print what became of its windows."""
    try:
        from headstart_research.planning.fleet.simulation import FleetSimulation
    except ModuleNotFoundError as error:
        raise PlanningError("the simulation needs SimPy: pip install 'headstart[fleet]'") from error
    failures = replace(
        fleet.failures,
        num_killed=min(fleet.failures.num_killed, size.num_engines - 1),
        killed_at_s=seconds / 3,
    )
    plan = FleetPlan(
        size.num_cameras,
        size.num_engines,
        fleet.ours,
        failures,
        fleet.bursts,
        fleet.engine.max_cameras,
    )
    ring = Ring(size.num_engines)
    sample = sampled(plan, ring, NUM_USUAL)
    outcome = FleetSimulation(plan, ring, sample.engines).run(seconds)
    groups = {
        f"{len(sample.usual)} engines at random": outcome.of(
            lambda each: each.home in sample.usual
        ),
        f"the fullest, {sample.num_cameras_fullest} cameras": outcome.of(
            lambda each: each.home == sample.fullest
        ),
        "cameras of an engine that dies": outcome.of(lambda each: each.home in sample.killed),
    }
    groups = {name: each for name, each in groups.items() if each.ended}
    out.print(_table(size, seconds, groups))
    return {
        "cameras": size.num_cameras,
        "engines": size.num_engines,
        "seconds": seconds,
        "simulated_engines": len(sample.engines),
        "groups": {name: outcome_json(each) for name, each in groups.items()},
    }


def _table(size: FleetSize, seconds: float, groups: dict[str, Outcome]) -> Table:
    table = figures_table(
        "simulated",
        figures=("windows", "p50 ms", "p95 ms", "dropped", "refused", "asked again"),
        title=f"{size.num_cameras:,} cameras on {size.num_engines:,} engines, {seconds:g} s",
    )
    for name, outcome in groups.items():
        table.add_row(
            name,
            f"{len(outcome.ended):,}",
            f"{outcome.percentile_s(50) * 1e3:.0f}",
            f"{outcome.percentile_s(95) * 1e3:.0f}",
            f"{outcome.num(Fate.DROPPED):,}",
            f"{outcome.num(Fate.REFUSED):,}",
            f"{outcome.num_retried:,}",
        )
    return table


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """The figures of some windows."""
    return {
        "windows": len(outcome.ended),
        "p50_ms": round(outcome.percentile_s(50) * 1e3, 1),
        "p95_ms": round(outcome.percentile_s(95) * 1e3, 1),
        "dropped": outcome.num(Fate.DROPPED),
        "refused": outcome.num(Fate.REFUSED),
        "retried": outcome.num_retried,
    }
