"""Forecasts against arithmetic done by hand, and against a target played out pass by pass."""

import random

import pytest

from headstart.errors import PlanningError
from headstart_research.planning.costs import Costs
from headstart_research.planning.forecast import bare, break_even_accepted, drafted
from headstart_research.planning.survival import Survival

RECORDED = Costs(prefill_s=0.326, step_s=0.0138)


def test_independent_acceptance_has_its_closed_form():
    for acceptance, length in ((0.279, 26), (0.7, 8), (0.9, 16)):
        survival = Survival.independent(acceptance, length)
        closed = (1 - acceptance ** (length + 1)) / (1 - acceptance)
        assert survival.tokens_per_pass == pytest.approx(closed)
    assert Survival.independent(1.0, 8).tokens_per_pass == 9


def test_survival_that_cannot_be_is_refused():
    with pytest.raises(PlanningError, match="rises"):
        Survival((0.2, 0.5))
    with pytest.raises(PlanningError, match="no share"):
        Survival((1.5,))


def test_expected_passes_are_those_of_a_target_played_out():
    survival = Survival((0.8, 0.6, 0.5, 0.1))
    chances, rng = survival.chances(), random.Random(0)
    played = []
    for _ in range(20_000):
        missing = passes = 30
        passes = 0
        while missing > 0:
            missing -= 1 + rng.choices(range(len(chances)), chances)[0]
            passes += 1
        played.append(passes)
    assert survival.passes_for(30) == pytest.approx(sum(played) / len(played), rel=0.01)
    assert survival.passes_for(30) > 30 / survival.tokens_per_pass


def test_without_drafts_every_token_is_a_pass():
    alone = bare(RECORDED, 50)
    assert alone.num_passes == 50
    assert alone.end_to_end_s == pytest.approx(0.326 + 49 * 0.0138)
    assert drafted(RECORDED, 50, Survival()).end_to_end_s == pytest.approx(alone.end_to_end_s)


def test_drafts_never_bring_the_first_token_sooner():
    perfect = drafted(RECORDED, 50, Survival((1.0,) * 32), first=Survival((1.0,) * 32))
    assert perfect.first_token_s == bare(RECORDED, 50).first_token_s
    assert perfect.num_passes == 2


def test_verification_is_paid_for_by_the_token_and_by_the_batch():
    costs = Costs(0.3, 0.01, verify_token_s=0.001, verify_pass_s=0.002)
    assert costs.pass_s(0) == costs.pass_s(0, batch=4) == 0.01
    assert costs.pass_s(8) == pytest.approx(0.020)
    assert costs.pass_s(8, batch=4) == pytest.approx(0.010 + 0.002 + 32 * 0.001)
    assert break_even_accepted(costs, 8) == pytest.approx(1.0)
    assert break_even_accepted(costs, 8, batch=4) == pytest.approx(3.4)


def test_wrong_drafts_slow_the_forecast_down():
    costs = Costs(0.3, 0.01, verify_token_s=0.001)
    wrong = drafted(costs, 50, Survival((0.0,) * 8))
    assert wrong.speedup_over(bare(costs, 50)) < 0.8


def test_costs_that_cannot_be_are_refused():
    with pytest.raises(PlanningError, match="above 0"):
        Costs(0.0, 0.01)
    with pytest.raises(PlanningError, match="below zero"):
        Costs(0.1, 0.01, verify_token_s=-1.0)
    with pytest.raises(PlanningError, match="at least 1"):
        bare(RECORDED, 0)
