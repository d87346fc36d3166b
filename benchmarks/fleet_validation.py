"""The simulated fleet against three real servers: the same windows at the same times.

    python -m benchmarks.fleet_validation --cameras 12 --every 12 6 --windows 20

Three `headstart serve` processes share this machine's cores. Each camera belongs to the server that
the simulation's ring gives it, and asks about a window of its own drive every so many seconds.
First the servers are asked one question at a time. That gives the prefill, the step and the passes
of an answer, by which the simulation is calibrated. Then the cameras ask by themselves, and the
same cameras ask in the simulation, whose engines share as many cores. Compared are the mean and the
median wait, the 95th percentile, and the answers a second.

Prints a table, then one line of JSON. Fails if a mean wait or the answers a second are more than
`--within` apart. Needs a quiet machine.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.film import Film
from benchmarks.fleet_replay import FilmedCamera, Replay, Told, play
from benchmarks.live_rounds import NUM_FRAMES, QUESTION, note, show
from benchmarks.serving import Workspace, add_arguments, keep, running
from headstart_lab.pair import find_pair
from headstart_lab.tiny import TinyVideoLlava
from tests.serve.servers import Server

from headstart.planner.costs import Costs
from headstart.planner.engine_model import Questions
from headstart.planner.fleet.outcome import Fate
from headstart.planner.fleet.placing import Ring
from headstart.planner.fleet.plan import FleetPlan
from headstart.planner.fleet.simulation import FleetSimulation
from headstart.planner.live import LiveWindow

NUM_SERVERS = 3
NUM_KNOWN = 4
"""Windows of each camera before anything is timed: its memory is then warm."""
NUM_CALIBRATED = 4
"""Windows of each camera that are asked one at a time."""
SEEDS = range(8)
"""Of the simulation: what is drawn differs, when cameras ask does not."""


def calibrated(told: Sequence[Told], window: LiveWindow) -> Questions:
    """What answers cost that were asked one at a time."""
    steps = sum(each.num_passes - 1 for each in told)
    costs = Costs(
        prefill_s=statistics.fmean(each.wait_s - each.decode_s for each in told),
        step_s=sum(each.decode_s for each in told) / steps if steps else 1e-6,
    )
    return Questions(costs, window, 1, measured_passes=tuple(each.num_passes for each in told))


def cameras_of(
    films: Sequence[Film], servers: Sequence[Server], plan: FleetPlan
) -> list[FilmedCamera]:
    """The cameras where the ring puts them, asking when the simulated ones do."""
    every_s = plan.questions.window.every_s
    owners = Ring(NUM_SERVERS).owners(np.arange(len(films)), np.ones(NUM_SERVERS, dtype=bool))
    return [
        FilmedCamera(
            f"camera {number}", film, servers[owner], plan.phase_s(number) + every_s, every_s
        )
        for number, (film, owner) in enumerate(zip(films, owners.tolist(), strict=True))
    ]


def simulated(plan: FleetPlan, seconds: float) -> dict[str, float]:
    """The waits of a simulated fleet, over all seeds."""
    waits_s: list[float] = []
    num_dropped = 0
    for seed in SEEDS:
        run = FleetSimulation(plan, Ring(NUM_SERVERS), range(NUM_SERVERS), seed)
        outcome = run.run(seconds + plan.questions.window.every_s)
        counted = outcome.of(lambda each: each.landed_s <= seconds)
        waits_s += counted.waits_s().tolist()
        num_dropped += counted.num(Fate.DROPPED)
    return summary(waits_s, num_dropped, len(SEEDS) * seconds)


def summary(waits_s: Sequence[float], num_dropped: int, seconds: float) -> dict[str, float]:
    """The figures that are compared."""
    return {
        "mean_s": round(statistics.fmean(waits_s), 4),
        "p50_s": round(float(np.percentile(waits_s, 50)), 4),
        "p95_s": round(float(np.percentile(waits_s, 95)), 4),
        "answers_a_second": round(len(waits_s) / seconds, 4),
        "dropped_share": round(num_dropped / (len(waits_s) + num_dropped), 4),
    }


def compared(real: Replay, plan: FleetPlan, seconds: float) -> dict[str, Any]:
    """Reality, the simulation, and how far it is off."""
    told = summary([each.wait_s for each in real.told], real.num_dropped, seconds)
    forecast = simulated(plan, seconds)
    off = {
        name: round(forecast[name] / told[name] - 1, 4)
        for name in ("mean_s", "p50_s", "p95_s", "answers_a_second")
    }
    return {
        "every_s": plan.questions.window.every_s,
        "real": told,
        "simulated": forecast,
        "off": off,
    }


def main() -> None:
    """Measure, simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--cameras", type=int, default=12)
    parser.add_argument("--every", type=float, nargs="+", default=[12.0, 6.0], help="seconds")
    parser.add_argument("--windows", type=int, default=20, help="of each camera, at each pace")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="that the engines share")
    parser.add_argument("--within", type=float, default=0.15)
    options = parser.parse_args()
    total = NUM_KNOWN + NUM_CALIBRATED + options.windows * len(options.every)
    note(f"drawing {total} windows of {options.cameras} cameras")
    films = [Film.of_drive(number, total, NUM_FRAMES) for number in range(options.cameras)]
    with tempfile.TemporaryDirectory(prefix="headstart-bench-") as made, ExitStack() as stack:
        if options.tiny:
            target = Path(made) / "target"
            TinyVideoLlava().save(target)
        else:
            target = options.target or find_pair().target
        started = []
        for number in range(NUM_SERVERS):
            home = Path(made) / f"server-{number}"
            home.mkdir()
            here = Workspace(home, target.absolute(), None, home, options.dtype)
            started.append(here.start_ours(vllm={"mm_processor_cache_gb": 0.125}))
        servers = [stack.enter_context(running(server)) for server in started]
        note("three servers are ready")
        rows, costs = measured(options, films, servers)
    show(
        ("every s", "", "mean s", "p50 s", "p95 s", "answers/s", "dropped"),
        [
            (row["every_s"], name, *row[name].values())
            for row in rows
            for name in ("real", "simulated", "off")
        ],
    )
    keep("fleet_validation", options, {"cameras": options.cameras, **costs, "loads": rows})
    far = [
        f"every {row['every_s']:g} s: {name} is off by {row['off'][name]:+.0%}"
        for row in rows
        for name in ("mean_s", "answers_a_second")
        if abs(row["off"][name]) > options.within
    ]
    sys.exit("\n".join(far) or None)


def measured(
    options: argparse.Namespace, films: Sequence[Film], servers: Sequence[Server]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Calibrate, then play and simulate every pace."""
    window = LiveWindow(NUM_FRAMES, options.every[0], options.every[0], 1e-6)
    questions = Questions(Costs(1.0, 1.0), window, 1)
    plan = FleetPlan(len(films), NUM_SERVERS, questions, num_cores=options.cores)
    alone: list[Told] = []
    for camera in cameras_of(films, servers, plan):
        with camera.server.client() as client:
            for number in range(NUM_KNOWN + NUM_CALIBRATED):
                told = camera.ask(client, number, QUESTION, 0.0)
                alone += [told] if number >= NUM_KNOWN else []
    costs = calibrated(alone, window).costs
    note(f"one at a time: prefill {costs.prefill_s:.3f} s, step {costs.step_s:.4f} s")
    rows = []
    first = NUM_KNOWN + NUM_CALIBRATED
    for every_s in options.every:
        paced = LiveWindow(NUM_FRAMES, every_s, every_s, 1e-6)
        plan = replace(plan, questions=calibrated(alone, paced))
        windows = range(first, first + options.windows)
        first += options.windows
        real = play(cameras_of(films, servers, plan), QUESTION, windows)
        rows.append(compared(real, plan, (options.windows + 1) * every_s))
        note(str(rows[-1]))
    return rows, {
        "prefill_s": round(costs.prefill_s, 4),
        "step_s": round(costs.step_s, 5),
        "passes_an_answer": round(statistics.fmean(each.num_passes for each in alone), 2),
        "alone_mean_s": round(statistics.fmean(each.wait_s for each in alone), 4),
    }


if __name__ == "__main__":
    main()
