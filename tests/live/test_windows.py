"""Windows of a camera's time: which frames they take, when they end, and that they only append."""

import math
import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from headstart.errors import LiveError, MediaError
from headstart.live.sources.source import Arrival
from headstart.live.windows import MAX_GROWING, FrameStatus, GrowingWindows, Windows
from headstart.media.events import Events, SensorSize
from rig.rough_camera import taken

SECOND_US = 1_000_000


def picture(value=0, size=(4, 6)) -> np.ndarray:
    return np.full((*size, 3), value % 256, dtype=np.uint8)


def tumbling(seconds=1.0, num_slots=4) -> GrowingWindows:
    return GrowingWindows(Windows(seconds), num_slots)


def land(windows, *times_s):
    """Frames at these seconds; what each of them changed."""
    return [windows.land(picture(), round(time_s * SECOND_US), time_s) for time_s in times_s]


def placements(landings) -> list[FrameStatus]:
    return [landing.placement for landing in landings]


def test_a_window_has_as_many_slots_as_the_target_is_shown_frames():
    *growing, last = land(tumbling(), 0, 0.25, 0.5, 0.75)
    assert placements([*growing, last]) == [FrameStatus.TAKEN] * 4
    assert [len(each.growing[0].frames) for each in growing] == [1, 2, 3]
    assert not any(each.ended for each in growing)
    assert last.growing == ()
    (window,) = last.ended
    assert (window.start_us, window.stop_us) == (0, SECOND_US)
    assert window.times_us == (0, 250_000, 500_000, 750_000)
    assert window.landed_s == 0.75


def test_a_slot_takes_the_first_frame_that_falls_into_it():
    landings = land(tumbling(), 0, 0.1, 0.24, 0.3, 0.49, 0.999)
    taken, spare = FrameStatus.TAKEN, FrameStatus.SPARE
    assert placements(landings) == [taken, spare, spare, taken, spare, taken]
    (window,) = landings[-1].ended
    assert window.times_us == (0, 300_000, 999_000)


def test_the_grid_is_fixed_by_the_first_frame_of_all():
    windows = tumbling()
    land(windows, 100.1, 100.35, 100.6, 100.85)
    landing = land(windows, 101.3, 101.4)[0]
    (window,) = landing.growing
    assert window.number == 1
    assert window.start_us == 101_100_000
    assert window.times_us == (101_300_000,)


def test_a_frame_later_than_its_windows_end_ends_it_with_empty_slots():
    windows = tumbling()
    land(windows, 0, 0.3)
    (landing,) = land(windows, 1.0)
    assert [window.times_us for window in landing.ended] == [(0, 300_000)]
    assert windows.num_missing == 2
    (landing,) = land(windows, 2.1)
    assert [window.number for window in landing.ended] == [1]
    assert windows.num_missing == 2 + 3
    (landing,) = land(windows, 2.9)
    assert [window.number for window in landing.ended] == [2]
    assert windows.num_missing == 2 + 3 + 2


def test_frames_after_a_full_window_are_spare_until_the_next_begins():
    windows = tumbling()
    land(windows, 0, 0.25, 0.5, 0.75)
    landings = land(windows, 0.8, 0.9, 1.0)
    assert placements(landings) == [FrameStatus.SPARE, FrameStatus.SPARE, FrameStatus.TAKEN]
    assert [len(landing.growing) for landing in landings] == [0, 0, 1]


def test_a_frame_older_than_the_newest_is_late_and_one_of_its_time_is_doubled():
    windows = tumbling()
    landings = land(windows, 0, 0.5, 0.5, 0.3, 0.499999, 0.75)
    taken, late = FrameStatus.TAKEN, FrameStatus.LATE
    assert placements(landings) == [taken, taken, FrameStatus.DOUBLED, late, late, taken]
    assert landings[-1].ended[0].times_us == (0, 500_000, 750_000)
    assert windows.num_missing == 1


def test_a_frame_of_a_window_that_was_ended_is_late():
    windows = tumbling()
    land(windows, 0)
    (window,) = windows.end_before(SECOND_US)
    assert window.times_us == (0,)
    assert placements(land(windows, 0.5, 0.9, 1.0)) == [
        FrameStatus.LATE,
        FrameStatus.LATE,
        FrameStatus.TAKEN,
    ]
    assert windows.num_missing == 3


def test_end_before_ends_no_window_whose_time_is_not_over():
    windows = GrowingWindows(Windows(2, every=1), 8)
    land(windows, 0, 1.0)
    assert windows.end_before(2 * SECOND_US - 1) == ()
    assert [each.number for each in windows.end_before(2 * SECOND_US)] == [0]
    assert [each.number for each in windows.end_before(2**62)] == [1]
    assert windows.end_before(2**62) == ()


def test_a_frame_of_another_size_waits_for_the_next_window():
    windows = tumbling()
    land(windows, 0)
    other = picture(size=(8, 6))
    assert windows.land(other, 300_000, 0.3).placement is FrameStatus.MISFIT
    assert windows.land(picture(), 400_000, 0.4).placement is FrameStatus.TAKEN
    landing = windows.land(other, SECOND_US, 1.0)
    assert landing.placement is FrameStatus.TAKEN
    assert landing.growing[0].frames[0].shape == other.shape
    assert [frame.shape for frame in landing.ended[0].frames] == [(4, 6, 3)] * 2


def test_a_frame_is_copied_when_it_is_taken():
    windows, frame = tumbling(), picture(7)
    landing = windows.land(frame, 0, 0.0)
    frame[:] = 0
    assert landing.growing[0].frames[0].min() == 7


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((4, 6), np.uint8),
        np.zeros((4, 6, 4), np.uint8),
        np.zeros((0, 6, 3), np.uint8),
        np.zeros((4, 6, 3), np.float32),
    ],
)
def test_what_is_not_a_frame_is_refused(frame):
    with pytest.raises(MediaError, match=r"give uint8 \[height, width, 3\], RGB"):
        tumbling().land(frame, 0, 0.0)


def test_an_hour_without_frames_begins_no_windows_for_it():
    windows = GrowingWindows(Windows(2, every=1), 8)
    land(windows, 0, 1.1)
    (landing,) = land(windows, 3600.5)
    assert [window.number for window in landing.ended] == [0, 1]
    assert [window.number for window in landing.growing] == [3599, 3600]
    assert windows.num_missing == 8 - 2 + 8 - 1


def test_stepping_windows_share_their_frames():
    windows = GrowingWindows(Windows(2, every=1), 4)
    *_, landing = land(windows, 0, 0.5, 1.0)
    assert [window.times_us for window in landing.growing] == [
        (0, 500_000, 1_000_000),
        (1_000_000,),
    ]
    assert landing.growing[0].frames[2] is landing.growing[1].frames[0]
    (landing,) = land(windows, 1.5)
    assert [window.number for window in landing.ended] == [0]
    assert [window.number for window in landing.growing] == [1]


def test_a_frame_that_one_window_takes_is_taken_though_another_has_its_slot_filled():
    windows = GrowingWindows(Windows(2, every=0.75), 4)
    # 0.6 has the slot of the first window; 0.75 begins the second.
    assert placements(land(windows, 0, 0.6, 0.75)) == [FrameStatus.TAKEN] * 3


def test_events_go_to_every_window_that_grows_those_of_spare_frames_too():
    sensor = SensorSize(6, 4)

    def events_at(time_us):
        return Events.checked([0], [0], [time_us], [1], sensor)

    windows = GrowingWindows(Windows(2, every=1), 2)
    windows.land(picture(), 0, 0.0, events_at(0))
    windows.land(picture(), 100_000, 0.1, events_at(90_000))
    (window,) = windows.land(picture(), 100_000, 0.1, events_at(95_000)).growing
    assert window.all_events().t.tolist() == [0, 90_000]
    landing = windows.land(picture(), SECOND_US, 1.0, events_at(SECOND_US))
    assert landing.ended[0].all_events().t.tolist() == [0, 90_000, SECOND_US]
    assert landing.growing[0].all_events().t.tolist() == [SECOND_US]
    assert land(tumbling(), 0)[0].growing[0].all_events() is None


def test_a_question_is_about_the_oldest_window_whose_time_is_not_over():
    windows = GrowingWindows(Windows(2, every=1), 4)
    assert windows.asked_about is None
    land(windows, 0, 0.5, 1.0)
    assert windows.asked_about.times_us == (0, 500_000, 1_000_000)
    land(windows, 1.5, 1.9)  # the last slot is filled, and the time goes on
    assert windows.asked_about.times_us == (0, 500_000, 1_000_000, 1_500_000)
    land(windows, 2.1)
    assert windows.asked_about.times_us == (1_000_000, 1_500_000, 2_100_000)


def test_where_no_window_grows_a_question_is_about_what_was_seen_last():
    windows = GrowingWindows(Windows(2, every=1), 4)
    land(windows, 0, 0.5, 1.0)
    windows.end_before(2**62)
    assert windows.asked_about.times_us == (0, 500_000, 1_000_000)
    land(windows, 1.8)
    assert windows.asked_about.times_us == (0, 500_000, 1_000_000)


def test_when_the_oldest_window_will_be_over():
    windows = tumbling(seconds=2)
    assert windows.first_end is None
    land(windows, 5, 5.5)
    assert windows.first_end == (7_000_000, 1.5)
    windows.end_before(7_000_000)
    assert windows.first_end is None


@pytest.mark.parametrize(
    ("seconds", "every", "said"),
    [
        (0.0, None, "0.01 s to a day"),
        (float("nan"), None, "0.01 s to a day"),
        (100_000, None, "0.01 s to a day"),
        (2, 0.0, "no longer than the window"),
        (2, 3, "no longer than the window"),
        (2, 2 / (MAX_GROWING + 1), "give a step of 0.25 s or more"),
    ],
)
def test_windows_that_cannot_be_are_refused(seconds, every, said):
    with pytest.raises(LiveError, match=said):
        Windows(seconds, every)


def rough_stream(dice, length_us, step_us):
    """Times and sizes of frames as a bad line delivers them, in the order of their arrival."""
    period_us = max(2, length_us // dice.randint(2, 30))
    time_us, arriving = dice.randrange(10**9), []
    for _ in range(dice.randint(1, 120)):
        time_us += period_us + dice.randint(-period_us // 2, period_us // 2)
        if dice.random() < 0.03:
            time_us += dice.choice((step_us, length_us, 3_600 * SECOND_US))
        size = (8, 6) if dice.random() < 0.03 else (4, 6)
        arriving += [(time_us, size)] * (2 if dice.random() < 0.05 else 1)
    for place in range(len(arriving) - 1):
        if dice.random() < 0.05:
            arriving[place : place + 2] = arriving[place + 1], arriving[place]
    return [arrival for arrival in arriving if dice.random() > 0.1] or arriving[:1]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_arrives_windows_only_append_and_nothing_is_lost_count_of(seed):
    dice = random.Random(seed)
    length_us = dice.choice((SECOND_US, 3 * SECOND_US, 1_234_567))
    step_us = math.ceil(length_us / dice.choice((1, 1, 2, 3, 8)))
    num_slots = dice.choice((1, 4, 8))
    stream = Windows(length_us / 1e6, step_us / 1e6)
    windows = GrowingWindows(stream, num_slots)
    arriving = rough_stream(dice, length_us, step_us)
    delivered = [Arrival(picture(0, size), time_us) for time_us, size in arriving]
    snapshots: dict[int, list] = {}
    ended, counted, taken_us = [], Counter(), set()
    for number, (time_us, size) in enumerate(arriving):
        landing = windows.land(picture(number, size), time_us, float(number))
        counted[landing.placement] += 1
        if landing.placement is FrameStatus.TAKEN:
            taken_us.add(time_us)
        ended += landing.ended
        assert len(landing.growing) <= math.ceil(length_us / step_us)
        for window in (*landing.growing, *landing.ended):
            snapshots.setdefault(window.number, []).append(window)
        if landing.placement is FrameStatus.TAKEN:
            seen_us = time_us - windows.asked_about.start_us
            from_first_us = time_us - arriving[0][0]
            assert min(from_first_us, length_us - step_us) <= seen_us < length_us
    ended += windows.end_before(2**62)
    for number, versions in snapshots.items():
        versions += [window for window in ended if window.number == number]
        for earlier, later in pairwise(versions):
            assert (earlier.start_us, earlier.stop_us) == (later.start_us, later.stop_us)
            assert later.times_us[: len(earlier.times_us)] == earlier.times_us
            pairs = zip(earlier.frames, later.frames, strict=False)
            assert all(before is after for before, after in pairs)
    numbers = [window.number for window in ended]
    assert sorted(set(numbers)) == sorted(numbers)
    assert sum(counted.values()) == len(arriving)
    assert taken_us == {time_us for window in ended for time_us in window.times_us}
    for window in ended:
        bounds = (window.start_us, window.stop_us, num_slots)
        assert window.times_us == tuple(each.time_us for each in taken(delivered, *bounds))
        assert window.start_us == arriving[0][0] + window.number * step_us
    begun = numbers and windows.num_missing + sum(len(window.frames) for window in ended)
    assert begun >= len(ended) * num_slots
    assert begun % num_slots == 0


def test_a_lost_frame_drops_its_window_whole_and_no_other():
    windows = tumbling()
    land(windows, 0, 0.25)
    landing = windows.lose(round(0.5 * SECOND_US))
    assert (landing.lost, landing.ended, landing.growing) == ((0,), (), ())
    late, first, *_, last = land(windows, 0.75, 1.0, 1.25, 1.5, 1.75)
    assert late.placement is FrameStatus.LATE
    assert first.placement is FrameStatus.TAKEN
    assert [(one.number, len(one.frames)) for one in last.ended] == [(1, 4)]
    assert windows.num_missing == 0, "the slots of a dropped window are not missing"


def test_a_lost_frame_ends_the_windows_before_it_and_begins_the_grid():
    windows = tumbling()
    assert windows.lose(0).lost == (0,)
    land(windows, 1.0, 1.25)
    landing = windows.lose(2 * SECOND_US)
    assert [len(one.frames) for one in landing.ended] == [2]
    assert landing.lost == (2,)


def test_a_frame_lost_after_its_window_was_full_costs_nothing():
    windows = tumbling()
    land(windows, 0, 0.25, 0.5, 0.75)
    assert windows.lose(round(0.9 * SECOND_US)).lost == ()


@pytest.mark.parametrize("seed", range(60))
def test_windows_begin_and_end_where_their_grid_says(seed):
    """Both are held against the plain words: window n is from origin + n steps on, so long."""
    chance = random.Random(seed)
    length_us = chance.randrange(10_000, 2_000_000)
    step_us = chance.randrange(-(-length_us // MAX_GROWING), length_us + 1)
    shape, origin_us = Windows(length_us / 1e6, step_us / 1e6), chance.randrange(10**9)
    windows, grid = GrowingWindows(shape, num_slots=length_us), shape.grid(origin_us)

    def falls_into(number: int, time_us: int) -> bool:
        return origin_us + number * step_us <= time_us < origin_us + number * step_us + length_us

    time_us, ended, fed = origin_us, [], []
    for _ in range(100):
        numbers = range((time_us - origin_us) // step_us + 2)
        held = [number for number in numbers[-MAX_GROWING - 3 :] if falls_into(number, time_us)]
        assert list(grid.holding(time_us)) == held
        fed.append(time_us)
        landing = windows.land(picture(), time_us, 0.0)
        ended += landing.ended
        is_full = [one.number for one in landing.ended if one.stop_us > time_us]
        assert sorted([one.number for one in landing.growing] + is_full) == held
        # Some times are the first or the last ones of a window.
        edge_us = chance.choice((grid.start_us, grid.stop_us))(held[-1] + chance.randrange(3))
        edge_us += chance.choice((-1, 0))
        ahead_us = time_us + chance.randrange(1, chance.choice((step_us, 5 * length_us)) + 1)
        time_us = edge_us if edge_us > time_us and chance.random() < 0.5 else ahead_us
    lost = list(grid.holding(time_us))
    landing = windows.lose(time_us)
    assert list(landing.lost) == lost, "none of them was full"
    for one in (*ended, *landing.ended):
        assert (one.start_us, one.stop_us) == (grid.start_us(one.number), grid.stop_us(one.number))
        assert one.stop_us - one.start_us == length_us
        assert one.times_us == tuple(each for each in fed if falls_into(one.number, each))


@pytest.mark.parametrize("every", [1.0, 0.5, 0.3])
def test_windows_are_lost_as_their_grid_foresees(every):
    """The server says by it which frames a loss makes useless, before they are decoded."""
    chance = random.Random(7)
    for _ in range(200):
        shape, origin_us = Windows(1.0, every), chance.randrange(10**7)
        windows, grid = GrowingWindows(shape, 4), shape.grid(origin_us)
        times_us = [origin_us]
        while times_us[-1] < origin_us + 4 * SECOND_US:
            times_us.append(times_us[-1] + chance.randrange(1, SECOND_US // 3))
        lost_us = chance.choice(times_us)
        hit, lost = grid.holding(lost_us), set()
        for time_us in times_us:
            if time_us == lost_us:
                lost = set(windows.lose(time_us).lost)
                continue
            placement = windows.land(picture(), time_us, 0.0).placement
            if lost_us < time_us < grid.start_us(hit.stop):
                assert placement is not FrameStatus.TAKEN, "it belongs to lost windows only"
        assert lost <= set(hit), "others only those that were full"
