"""Confidence mapped to how often it is right."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs what the engine brings")

from headstart_research.training.calibration import error, fit


def judged(slope, offset, num=20_000):
    """Guesses whose log odds of being right are a line of the log odds they claim."""
    draw = np.random.default_rng(0)
    log_odds = draw.normal(1.0, 2.0, num)
    claimed = 1 / (1 + np.exp(-log_odds))
    true = 1 / (1 + np.exp(-(slope * log_odds + offset)))
    return claimed, draw.random(num) < true, true


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.5, -0.7), (1.6, 0.4)])
def test_the_line_is_found(slope, offset):
    claimed, right, _ = judged(slope, offset)
    assert fit(claimed, right) == pytest.approx((slope, offset), abs=0.06)


def test_the_error_is_large_before_and_small_after():
    claimed, right, true = judged(0.5, -0.7)
    assert error(claimed, right) > 0.1
    assert error(true, right) < 0.02


def test_few_guesses_that_are_all_right_do_not_make_it_certain():
    slope, offset = fit(np.array([0.9, 0.95, 0.99]), np.array([True, True, True]))
    assert 0.5 < slope < 3.0
    assert abs(offset) < 2.0
