"""The benchmarks of fleets on a small scale, without servers."""

import pytest

pytest.importorskip("simpy")

from benchmarks.fleet_replay import Replay, Told

from headstart.planner.costs import Costs
from headstart.planner.engine_model import Questions
from headstart.planner.fleet.outcome import Fate
from headstart.planner.fleet.placing import Ring
from headstart.planner.fleet.plan import FleetPlan
from headstart.planner.fleet.simulation import FleetSimulation
from headstart.planner.live import LiveWindow
from tests.test_benchmarks import ROOT, last_line_of

PACE = LiveWindow(8, 6.0, 6.0, 1e-6)
COSTS = Costs(0.4, 0.02)
PASSES = (2, 4, 6, 20)


def test_a_fleet_breaks_as_it_gets_fuller(tmp_path):
    figures = last_line_of(
        "fleet_simulation",
        *(ROOT / "examples" / "fleet.toml", "--cameras", 60, 600, "--fills", 0.4, 1.2),
        *("--seconds", 30, "--output", tmp_path),
    )
    late = {
        (row["case"], row["fill"] > 1): row["late"]
        for row in figures["fleets"]
        if row["cameras"] == 60
    }
    assert late["evenly", False] <= late["ring", False] < late["ring", True]
    assert late["ring", True] > 0.1
    (larger,) = (row for row in figures["fleets"] if row["cameras"] == 600)
    assert larger["simulated_engines"] < larger["engines"]
    assert {"memory lost", "memory kept"} == figures["after_a_death"]["mean_wait_s"].keys()


def test_a_fleet_that_behaves_as_simulated_is_found_to():
    validation = pytest.importorskip("benchmarks.fleet_validation")
    alone = [Told(0.0, 0.4 + 0.02 * (passes - 1), passes, 0.02 * (passes - 1)) for passes in PASSES]
    questions = validation.calibrated(alone, PACE)
    assert questions.costs.prefill_s == pytest.approx(COSTS.prefill_s)
    assert questions.costs.step_s == pytest.approx(COSTS.step_s)
    plan = FleetPlan(12, 3, Questions(COSTS, PACE, 1, measured_passes=PASSES), num_cores=2)
    seconds = 40 * PACE.every_s
    outcome = FleetSimulation(plan, Ring(3), range(3), seed=99).run(seconds + PACE.every_s)
    played = outcome.of(lambda each: each.landed_s <= seconds)
    real = Replay(
        [Told(each.landed_s, each.wait_s, 1, 0.0) for each in played.ended],
        played.num(Fate.DROPPED),
    )
    off = validation.compared(real, plan, seconds)["off"]
    assert all(abs(share) < 0.1 for share in off.values())
    slower = [Told(each.landed_s, 1.3 * each.wait_s, 1, 0.0) for each in played.ended]
    assert validation.compared(Replay(slower), plan, seconds)["off"]["mean_s"] < -0.15
