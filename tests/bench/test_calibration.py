"""Costs are found again in answers that were made from them, and forecasts come out right."""

import pytest

from headstart.bench.calibration import check_forecasts, drafting_costs, plain_costs
from headstart.bench.result import BARE
from tests.bench.played import COSTS, played_result


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
