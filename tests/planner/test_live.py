"""Forecasts of one live camera, against arithmetic done by hand."""

from itertools import pairwise

import pytest

from headstart.errors import PlanningError
from headstart_research.planning.costs import Costs
from headstart_research.planning.live import LiveWindow, live_forecasts
from headstart_research.planning.survival import Survival

COSTS = Costs(prefill_s=0.4, step_s=0.018, verify_token_s=0.0004)
WINDOW = LiveWindow(num_frames=8, window_s=2.0, every_s=2.0, feed_s=0.08)
DRAFTS = Survival((1.0,) * 32)
VERIFY_S = 32 * 0.0004


def test_feeding_and_drafts_shorten_the_wait_each_by_its_own_part():
    # 67 tokens in drafts of 32 that are all right: 33 with the prompt, 33 in a pass, and one more.
    forecasts = live_forecasts(COSTS, WINDOW, 67, DRAFTS)
    waits = {
        name: (forecast.answer.first_token_s, forecast.answer.end_to_end_s)
        for name, forecast in forecasts.items()
    }
    passes_s = 2 * (0.018 + VERIFY_S)
    assert waits["bare"] == pytest.approx((0.4, 0.4 + 66 * 0.018))
    assert waits["fed"] == pytest.approx((0.098, 0.098 + 66 * 0.018))
    assert waits["drafts"] == pytest.approx((0.4 + VERIFY_S, 0.4 + VERIFY_S + passes_s))
    assert waits["both"] == pytest.approx((0.098 + VERIFY_S, 0.098 + VERIFY_S + passes_s))


def test_feeding_costs_the_engine_more_than_one_prefill():
    forecasts = live_forecasts(COSTS, WINDOW, 78, DRAFTS)
    more_s = forecasts["both"].engine_s - forecasts["drafts"].engine_s
    assert more_s == pytest.approx(8 * 0.08 + 0.018 - 0.4)
    assert forecasts["bare"].engine_s == forecasts["bare"].answer.end_to_end_s


def test_between_all_fed_and_none_fed_the_prompt_grows_by_the_frame():
    prompts = [WINDOW.prompt_s(COSTS, num_unfed) for num_unfed in range(1, 9)]
    assert prompts[0] == pytest.approx(0.098)
    assert prompts[-1] == pytest.approx(0.4)
    steps = [after - before for before, after in pairwise(prompts)]
    assert steps == pytest.approx([steps[0]] * 7)


def test_frames_that_are_fed_together_cost_less_than_one_by_one():
    assert WINDOW.feeding_s(COSTS, 0) == 0
    assert WINDOW.feeding_s(COSTS, 1) == pytest.approx(0.08)
    assert 0.08 < WINDOW.feeding_s(COSTS, 4) < 4 * 0.08


def test_of_one_frame_nothing_can_be_fed_ahead():
    still = LiveWindow(num_frames=1, window_s=1.0, every_s=1.0, feed_s=0.4)
    forecasts = live_forecasts(COSTS, still, 78, DRAFTS)
    assert forecasts["fed"].answer == forecasts["bare"].answer
    assert forecasts["fed"].engine_s == forecasts["bare"].engine_s


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ((0, 2.0, 2.0, 0.08), "at least 1"),
        ((8, 2.0, 3.0, 0.08), "no longer than the window"),
        ((8, 2.0, 0.0, 0.08), "above 0"),
        ((8, 2.0, 2.0, 0.0), "takes time"),
    ],
)
def test_a_window_that_cannot_be_is_refused(window, words):
    with pytest.raises(PlanningError, match=words):
        LiveWindow(*window)


def test_feeds_that_take_less_than_the_prefill_were_measured_elsewhere():
    with pytest.raises(PlanningError, match="on one engine"):
        live_forecasts(COSTS, LiveWindow(8, 2.0, 2.0, 0.02), 78, DRAFTS)
