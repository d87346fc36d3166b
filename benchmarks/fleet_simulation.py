"""What breaks first in a fleet: simulated from measured costs, as its engines get fuller.

    python -m benchmarks.fleet_simulation examples/fleet.toml

For every fill (cameras of an average engine, as a share of what an engine holds) a fleet is
simulated five times: cameras spread evenly, placed by a ring, by a ring whose cameras all have the
same clock, by a ring with bursts of questions, and by a ring of which a tenth of the engines die at
once. A window is late if its answer does not come within the limit of the file, or not at all.
Last, the waits after such a death are followed in time, for cameras whose memory is lost with the
engine and for cameras whose memory is kept elsewhere.

The larger fleets of `--cameras` are simulated half full. Fleets of more than 100 engines are
simulated by a sample of them. Prints a line for each fleet, and one line of JSON last.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.measurement import Measurement

from headstart.cli.fleet_file import FleetFile, read_fleet
from headstart.planner.fleet.outcome import Ended, Fate, Outcome
from headstart.planner.fleet.placing import EvenPlacing, Placing, Ring
from headstart.planner.fleet.plan import Bursts, Failures, FleetPlan
from headstart.planner.fleet.sampling import sampled
from headstart.planner.fleet.simulation import FleetSimulation

NUM_USUAL = 100
WARMUP_S = 10.0
DEAD_SHARE = 0.1
HALF = 0.5
BURSTS = Bursts(every_s=20.0, share=0.5)


@dataclass(frozen=True)
class Case:
    """Something that happens to a fleet."""

    name: str
    is_even: bool = False
    bursts: Bursts = field(default_factory=Bursts)
    dead_share: float = 0.0


CASES = (
    Case("evenly", is_even=True),
    Case("ring"),
    Case("one clock", bursts=Bursts(aligned=1.0)),
    Case("bursts", bursts=BURSTS),
    Case("deaths", dead_share=DEAD_SHARE),
)


def failures(fleet: FleetFile, num_killed: int, at_s: float) -> Failures:
    """Only these engines die, and come back as the file says."""
    return replace(fleet.failures, deaths_a_month=0.0, num_killed=num_killed, killed_at_s=at_s)


def simulate(
    fleet: FleetFile, held: int, num_cameras: int, fill: float, case: Case, seconds: float
) -> dict[str, Any]:
    """One fleet, for so long."""
    begun_s = time.monotonic()
    num_engines = max(2, round(num_cameras / (fill * held)))
    plan = FleetPlan(
        num_cameras,
        num_engines,
        fleet.ours,
        failures(fleet, round(case.dead_share * num_engines), WARMUP_S),
        case.bursts,
        fleet.engine.max_cameras,
    )
    placing: Placing = EvenPlacing(num_engines) if case.is_even else Ring(num_engines)
    sample = sampled(plan, placing, NUM_USUAL)
    outcome = FleetSimulation(plan, placing, sample.engines).run(seconds)
    limit_s = fleet.ours.window.limit_s
    usual = settled(outcome, lambda each: each.home in sample.usual)
    fullest = settled(outcome, lambda each: each.home == sample.fullest)
    return {
        "case": case.name,
        "cameras": num_cameras,
        "engines": num_engines,
        "simulated_engines": len(sample.engines),
        "fill": round(num_cameras / num_engines / held, 3),
        "fullest": sample.num_cameras_fullest,
        "windows": len(usual.ended),
        "late": round(usual.late_share(limit_s), 5),
        "dropped": usual.num(Fate.DROPPED),
        "refused": usual.num(Fate.REFUSED),
        "p50_s": round(usual.percentile_s(50), 4),
        "p95_s": round(usual.percentile_s(95), 4),
        "late_on_fullest": round(fullest.late_share(limit_s), 5),
        "wall_s": round(time.monotonic() - begun_s, 2),
    }


def settled(outcome: Outcome, wanted: Callable[[Ended], bool]) -> Outcome:
    """Some windows, after the simulation has begun properly."""
    return outcome.of(lambda each: each.landed_s >= WARMUP_S and wanted(each))


def after_a_death(fleet: FleetFile, held: int, num_cameras: int, fill: float) -> dict[str, Any]:
    """The waits of the cameras of a tenth of the engines, in parts of a window's time."""
    num_engines = max(2, round(num_cameras / (fill * held)))
    every_s, at_s = fleet.ours.window.every_s, 5 * fleet.ours.window.every_s
    curves = {}
    for name, is_kept in (("memory lost", False), ("memory kept", True)):
        gone = failures(fleet, max(1, round(DEAD_SHARE * num_engines)), at_s)
        plan = FleetPlan(
            num_cameras,
            num_engines,
            fleet.ours,
            replace(gone, is_memory_kept=is_kept),
            max_cameras=fleet.engine.max_cameras,
        )
        outcome = FleetSimulation(plan, Ring(num_engines), range(num_engines)).run(
            at_s + fleet.failures.restart_s + 10 * every_s
        )
        dead = set(plan.killed_engines())
        own = outcome.of(lambda each, dead=dead: each.home in dead)
        curves[name] = [
            [begin_s - at_s, round(float(part.waits_s().mean()), 4), round(part.lost_share, 4)]
            for begin_s, part in own.by_time(every_s).items()
            if part.num(Fate.ANSWERED)
        ]
    return {
        "cameras": num_cameras,
        "engines": num_engines,
        "fill": round(num_cameras / num_engines / held, 3),
        "restart_s": fleet.failures.restart_s,
        "every_s": every_s,
        "mean_wait_s": curves,
    }


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fleet", type=Path, help="a file for `headstart plan --fleet`")
    parser.add_argument(
        "--cameras", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000]
    )
    parser.add_argument(
        "--fills", type=float, nargs="+", default=[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    )
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    fleet = read_fleet(options.fleet)
    load = fleet.ours.held()
    if load is None:
        sys.exit("an engine does not hold even one such camera")
    held = min(load.num_cameras, fleet.engine.max_cameras)
    rows = []
    smallest = min(options.cameras)
    for num_cameras in options.cameras:
        # What happens to an engine does not depend on how many others there are: the larger fleets
        # show the ring alone, half full.
        is_smallest = num_cameras == smallest
        for fill in options.fills if is_smallest else [HALF]:
            for case in CASES if is_smallest else CASES[1:2]:
                rows.append(simulate(fleet, held, num_cameras, fill, case, options.seconds))
                print(rows[-1], file=sys.stderr, flush=True)
    figures = {
        "measured": fleet.measured,
        "held": held,
        "within_s": fleet.ours.window.limit_s,
        "seconds": options.seconds,
        "fleets": rows,
        "after_a_death": after_a_death(fleet, held, smallest, HALF),
    }
    command = ["python", "-m", "benchmarks.fleet_simulation", *sys.argv[1:]]
    measurement = Measurement("fleet_simulation", command, figures)
    measurement.write(options.output)
    print(measurement.line())


if __name__ == "__main__":
    main()
