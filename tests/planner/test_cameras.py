"""The simulated engine: one camera is the forecast, many wait, too many are not held."""

import pytest

from headstart_research.planning.cameras import Cameras, percentile
from headstart_research.planning.costs import Costs
from headstart_research.planning.live import LiveWindow, live_forecasts
from headstart_research.planning.survival import Survival

COSTS = Costs(prefill_s=0.4, step_s=0.018, verify_token_s=0.0004)
WINDOW = LiveWindow(num_frames=8, window_s=2.0, every_s=2.0, feed_s=0.08)
STEPPING = LiveWindow(num_frames=8, window_s=4.0, every_s=2.0, feed_s=0.08)
DRAFTS = Survival.independent(0.94, 32)
BARE = Cameras(COSTS, WINDOW, 78)
BOTH = Cameras(COSTS, WINDOW, 78, DRAFTS, is_fed=True)


@pytest.mark.parametrize("window", [WINDOW, STEPPING], ids=["tumbling", "stepping"])
@pytest.mark.parametrize("is_fed", [False, True])
def test_one_camera_waits_as_long_as_the_forecast_says(window, is_fed):
    load = Cameras(COSTS, window, 78, is_fed=is_fed).load(1)
    forecast = live_forecasts(COSTS, window, 78, DRAFTS)["fed" if is_fed else "bare"].answer
    assert percentile(load.first_token_s, 0.5) == pytest.approx(forecast.first_token_s)
    assert percentile(load.last_word_s, 0.5) == pytest.approx(forecast.end_to_end_s)
    assert load.num_dropped == 0
    assert load.fed_share == (1.0 if is_fed else 0.0)


def test_with_drafts_the_mean_wait_is_the_forecast():
    waits = BOTH.load(1).last_word_s
    forecast = live_forecasts(COSTS, WINDOW, 78, DRAFTS)["both"].answer
    assert sum(waits) / len(waits) == pytest.approx(forecast.end_to_end_s, rel=0.05)


def test_the_same_figures_give_the_same_load():
    assert BOTH.load(3) == BOTH.load(3)


def test_what_is_held_is_held_and_one_more_is_not():
    for cameras in (BARE, BOTH):
        held = cameras.held()
        assert held is not None
        assert percentile(held.last_word_s, 0.95) < WINDOW.every_s
        assert not cameras.load(held.num_cameras + 1).is_held(WINDOW)
    assert BARE.held().num_cameras < BOTH.held().num_cameras


def test_an_engine_that_answers_too_slowly_holds_none():
    assert Cameras(COSTS, LiveWindow(8, 1.0, 1.0, 0.08), 78).held() is None


def test_under_load_feeding_stops_and_the_wait_grows_towards_a_whole_prefill():
    alone, crowded = BOTH.load(1), BOTH.load(8)
    assert alone.fed_share == 1.0
    assert crowded.fed_share < 0.2
    assert percentile(crowded.first_token_s, 0.5) > COSTS.prefill_s
    assert alone.busy_share < 0.2
    assert crowded.busy_share > 0.8


def test_windows_are_dropped_whole_and_the_wait_stays_bounded():
    # The question under way, the one asked next, and no queue of older ones behind them.
    few, many = BARE.load(4), BARE.load(8)
    assert 0 < few.num_dropped < many.num_dropped
    assert percentile(many.last_word_s, 1.0) < 2 * 8 * 1.8 + 2.0


def test_feeding_holds_no_fewer_cameras_than_drafts_alone():
    drafts = Cameras(COSTS, WINDOW, 78, DRAFTS).held()
    assert BOTH.held().num_cameras >= drafts.num_cameras


def test_passes_are_shared_and_prompts_are_not():
    # With short prompts many answers are decoded together; with long ones each waits its turn.
    short = Cameras(Costs(0.02, 0.02), LiveWindow(8, 2.0, 2.0, 0.02), 50)
    long = Cameras(Costs(0.5, 0.01), LiveWindow(8, 2.0, 2.0, 0.07), 50)
    assert short.held().num_cameras > 2.0 / (0.02 + 49 * 0.02)
    assert long.held().num_cameras <= 2.0 / 0.5


def test_drafts_that_cost_more_than_they_save_are_not_verified():
    dear = Costs(prefill_s=0.4, step_s=0.018, verify_token_s=0.02)
    right = Survival((1.0,) * 32)
    assert Cameras(dear, WINDOW, 78, right).load(2) == Cameras(dear, WINDOW, 78).load(2)
    # Free of charge they are verified in any batch.
    free = Costs(prefill_s=0.4, step_s=0.018)
    assert Cameras(free, WINDOW, 66, right).load(1).last_word_s[0] == pytest.approx(0.4 + 0.018)


def test_a_percentile_is_one_of_the_values():
    assert percentile((3.0, 1.0, 2.0), 0.5) == 2.0
    assert percentile((3.0, 1.0, 2.0), 0.95) == 3.0
    assert percentile((), 0.5) == float("inf")
