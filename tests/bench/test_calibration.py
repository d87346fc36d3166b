"""Costs are found again in answers that were made from them, and forecasts come out right."""

import random
from dataclasses import replace

import pytest

from headstart_research.bench.calibration import (
    check_forecasts,
    drafting_costs,
    plain_costs,
    survival_of,
)
from headstart_research.bench.result import BARE
from tests.bench.played import COSTS, played_open_result, played_result, played_sample


def test_the_costs_that_made_the_answers_are_found_again():
    result = played_result()
    bare = result.settled("fixed", BARE)
    plain = plain_costs(bare)
    assert plain.prefill_s == pytest.approx(COSTS.prefill_s, rel=0.02)
    assert plain.step_s == pytest.approx(COSTS.step_s, rel=0.02)
    ours = [s for name in ("none", "memory", "wrong") for s in result.settled("fixed", name)]
    costs = drafting_costs(bare, ours)
    assert costs.step_s == pytest.approx(COSTS.step_s, rel=0.05)
    verifying = costs.pass_s(16) - costs.pass_s(0)
    assert verifying == pytest.approx(COSTS.pass_s(16) - COSTS.step_s, rel=0.25)


def test_forecasts_are_within_a_tenth_of_what_was_played():
    checks = check_forecasts(played_result())
    assert {(c.workload, c.method) for c in checks} >= {("fixed", BARE), ("streams-2", "memory")}
    for check in checks:
        assert abs(check.error) < 0.1, check
    by_method = {c.method: c for c in checks if c.workload == "fixed"}
    assert by_method["memory"].forecast_speedup > 1.5
    assert by_method["wrong"].forecast_speedup < 1
    assert by_method["wrong"].break_even == pytest.approx(0.3, abs=0.15)
    assert by_method[BARE].break_even is None


def test_forecasts_hold_on_a_machine_that_was_slower_for_one_method():
    result = played_result()
    slowed = tuple(
        replace(s, end_to_end_s=1.6 * s.end_to_end_s, first_token_s=1.6 * s.first_token_s)
        if s.beside == "memory"
        else s
        for s in result.samples
    )
    checks = check_forecasts(replace(result, samples=slowed))
    assert checks
    for check in checks:
        assert abs(check.error) < 0.1, check


def test_open_loads_are_not_forecast():
    closed, opened = played_result(), played_open_result()
    both = replace(closed, samples=closed.samples + opened.samples, loads=opened.loads)
    assert check_forecasts(both) == check_forecasts(closed)
    assert check_forecasts(opened) == []


def test_a_last_pass_says_nothing_of_what_lies_beyond_the_answer():
    sample = played_sample(random.Random(0), "memory", "memory", (0, 0, 5), "fixed")
    # Two drafts were right to the end of their answers, one was wrong after two tokens.
    samples = [replace(sample, accepted=accepted) for accepted in ((9, 4), (9, 1), (9, 2, 3))]
    first, later = survival_of(samples)
    assert first.shares == (1.0,) * 9
    assert later.shares == pytest.approx((1.0, 1.0, 2 / 3, 2 / 3))
