"""A simulated fleet: an engine of it is the engine that is simulated alone; deaths lose nothing."""

from dataclasses import replace
from statistics import fmean

import pytest

pytest.importorskip("simpy")

from headstart_research.planning.cameras import Cameras
from headstart_research.planning.costs import Costs
from headstart_research.planning.fleet.outcome import Fate
from headstart_research.planning.fleet.placing import Ring
from headstart_research.planning.fleet.plan import Bursts, Failures, FleetPlan
from headstart_research.planning.fleet.sampling import sampled
from headstart_research.planning.fleet.simulation import FleetSimulation
from headstart_research.planning.live import LiveWindow
from headstart_research.planning.survival import Survival
from tests.planner.fleet.even_placing import EvenPlacing

QUESTIONS = Cameras(
    Costs(0.05, 0.012, 0.0003, request_s=0.0003),
    LiveWindow(8, 2.0, 2.0, 0.01),
    50,
    Survival.independent(0.9, 32),
    is_fed=True,
    half_warm_answers=2.5,
)
KILLED = Failures(restart_s=20.0, noticed_s=1.0, num_killed=1, killed_at_s=20.0)


def run(plan, placing=None, seconds=60.0, engines=None):
    placing = placing or Ring(plan.num_engines)
    engines = range(plan.num_engines) if engines is None else engines
    return FleetSimulation(plan, placing, engines).run(seconds)


def lost_share(outcome):
    """The share of windows that were not answered."""
    return 1 - outcome.num(Fate.ANSWERED) / len(outcome.ended)


@pytest.mark.parametrize("is_fed", [False, True])
@pytest.mark.parametrize("num_cameras", [4, 12])
def test_an_engine_of_a_fleet_is_the_engine_simulated_alone(num_cameras, is_fed):
    questions = replace(QUESTIONS, is_fed=is_fed)
    outcome = run(FleetPlan(16 * num_cameras, 16, questions), EvenPlacing(16), 40.0)
    waits_s = questions.load(num_cameras).last_word_s
    # When the cameras begin is drawn in both, and not alike.
    assert outcome.waits_s().mean() == pytest.approx(fmean(waits_s), rel=0.15)
    assert lost_share(outcome) == 0.0


def test_every_window_is_answered_while_an_engine_dies_and_comes_back():
    plan = FleetPlan(48, 6, QUESTIONS, KILLED)
    outcome = run(plan)
    num_landed = 48 * 28  # windows of 2 s in 60 s; the first ended after 2 to 4 s
    assert outcome.num(Fate.ANSWERED) == pytest.approx(num_landed, abs=50)
    assert outcome.num(Fate.DROPPED) == outcome.num(Fate.REFUSED) == 0
    assert outcome.num_retried > 0
    retried = outcome.of(lambda each: each.is_retried)
    assert {each.home for each in retried.ended} == {0}
    assert max(each.wait_s for each in retried.ended) >= KILLED.noticed_s


def test_a_camera_that_moved_waits_longer_unless_its_memory_moved_too():
    waits = {}
    for is_kept in (False, True):
        plan = FleetPlan(40, 4, QUESTIONS, replace(KILLED, is_memory_kept=is_kept))
        after = run(plan).of(lambda each: each.home == 0 and 21 <= each.landed_s < 30)
        waits[is_kept] = float(after.waits_s().mean())
    assert waits[False] > 1.3 * waits[True]


def test_a_full_server_refuses_the_cameras_that_it_inherits():
    plan = FleetPlan(40, 4, QUESTIONS, KILLED, max_cameras=10)
    outcome = run(plan, EvenPlacing(4))
    refused = outcome.of(lambda each: each.fate is Fate.REFUSED)
    assert {each.home for each in refused.ended} == {0}
    assert min(each.landed_s for each in refused.ended) > 18.0
    assert max(each.landed_s for each in refused.ended) < 42.0  # at home again


def test_the_fullest_engine_of_a_ring_drops_windows_before_an_average_one_does():
    plan = FleetPlan(400, 20, QUESTIONS)  # 20 cameras each are what an engine about holds
    ring = Ring(20)
    outcome, sample = run(plan, ring, 40.0), sampled(plan, ring, 20)
    fullest = outcome.of(lambda each: each.home == sample.fullest)
    assert sample.num_cameras_fullest > 24
    assert lost_share(fullest) > lost_share(outcome) > 0
    assert lost_share(run(plan, EvenPlacing(20), 40.0)) < lost_share(outcome) / 2


def test_windows_that_end_together_wait_for_each_other():
    apart, together = (
        run(FleetPlan(48, 4, QUESTIONS, bursts=Bursts(aligned=aligned)), EvenPlacing(4), 30.0)
        for aligned in (0.0, 1.0)
    )
    assert together.percentile_s(95) > 1.5 * apart.percentile_s(95)


def test_a_burst_asks_more_questions():
    quiet, burst = (
        run(FleetPlan(48, 4, QUESTIONS, bursts=Bursts(5.0, share)), EvenPlacing(4), 30.0)
        for share in (0.0, 1.0)
    )
    more = len(burst.ended) - len(quiet.ended)
    assert more == pytest.approx(5 * 48, abs=5)
    assert burst.percentile_s(99) > quiet.percentile_s(99)


def test_a_sample_of_engines_tells_what_all_of_them_do():
    plan = FleetPlan(1200, 160, QUESTIONS, KILLED)
    ring = Ring(160)
    sample = sampled(plan, ring, 40)
    part, whole = run(plan, ring, 30.0, sample.engines), run(plan, ring, 30.0)
    assert len(sample.engines) < 80
    usual = part.of(lambda each: each.home in sample.usual)
    assert usual.percentile_s(50) == pytest.approx(whole.percentile_s(50), rel=0.2)
    assert usual.percentile_s(95) == pytest.approx(whole.percentile_s(95), rel=0.2)
    # The cameras of the engine that dies are followed to wherever they go.
    followed, all_of_it = (each.of(lambda window: window.home == 0) for each in (part, whole))
    assert len(followed.ended) == pytest.approx(len(all_of_it.ended), rel=0.02)


def test_the_same_seed_gives_the_same_fleet():
    plan = FleetPlan(40, 4, QUESTIONS, replace(KILLED, deaths_a_month=500.0))
    assert run(plan, seconds=30.0) == run(plan, seconds=30.0)
