"""One clock over many connections, and the pauses between them."""

from itertools import pairwise

import pytest

from headstart.live.sources.pace import SourceClock
from headstart.live.sources.reconnecting import BackOff
from rig.footage import is_increasing


class Wall:
    """A clock that a test sets."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


def stamped(frames):
    """Times of frames given as (when they arrive in s, what they state in us)."""
    wall = Wall()
    clock = SourceClock(wall)
    times = []
    for arrived_s, stated_us in frames:
        wall.now_s = 1000.0 + arrived_s
        times.append(clock.stamp(stated_us))
    return times


def test_stated_times_are_kept_however_the_network_delays_frames():
    frames = [(0.0, 500), (0.09, 40_500), (0.1, 80_500), (0.3, 120_500)]
    assert stamped(frames) == [0, 40_000, 80_000, 120_000]


def test_without_stated_times_the_arrival_counts():
    assert stamped([(0.0, None), (0.09, None), (0.1, None)]) == [0, 90_000, 100_000]


def test_times_that_jump_are_anchored_anew():
    forth = stamped([(0.0, 0), (0.04, 40_000), (0.08, 10**12), (0.12, 10**12 + 40_000)])
    assert forth == [0, 40_000, 80_000, 120_000]
    back = stamped([(0.0, 5_000_000), (0.04, 5_040_000), (0.08, 0), (0.12, 40_000)])
    assert back == [0, 40_000, 80_000, 120_000]


def test_frames_that_come_all_at_once_keep_their_distances():
    """The first ones of a connection have waited for the decoder to start."""
    burst = [(0.0, step * 40_000) for step in range(100)]
    assert stamped(burst) == [step * 40_000 for step in range(100)]


def test_a_stall_does_not_shift_the_clock():
    late = [(3.0, step * 40_000) for step in range(1, 75)]
    assert stamped([(0.0, 0), *late, (3.04, 3_040_000)])[-1] == 3_040_000


def test_a_slow_clock_stays_near_arrival_and_a_fast_one_is_followed():
    slow = stamped([(step * 0.04, step * 20_000) for step in range(1000)])
    assert is_increasing(slow)
    assert max(abs(at - step * 40_000) for step, at in enumerate(slow)) <= 5_100_000
    fast = stamped([(step * 0.04, step * 60_000) for step in range(1000)])
    steps = [after - before for before, after in pairwise(fast)]
    assert sorted(steps)[10] == 60_000
    assert min(steps) > 0


def test_after_a_reconnect_times_go_on():
    wall = Wall()
    clock = SourceClock(wall)
    before = [clock.stamp(7_000_000), clock.stamp(7_040_000)]
    wall.now_s += 5.0
    clock.reconnected()
    after = [clock.stamp(0), clock.stamp(40_000)]
    wall.now_s += 2.0
    clock.reconnected()
    after += [clock.stamp(0), clock.stamp(40_000)]
    assert before + after == [0, 40_000, 5_000_000, 5_040_000, 7_000_000, 7_040_000]


def test_equal_times_are_told_apart():
    assert stamped([(0.0, 0), (0.0, 0), (0.0, None)]) == [0, 1, 2]


def test_pauses_double_up_to_half_a_minute():
    back_off = BackOff()
    expected = [0.5, 1, 2, 4, 8, 16, 30, 30]
    for most_s in expected:
        assert most_s / 2 <= back_off.after(held_s=1.0) <= most_s


def test_a_connection_that_held_starts_them_anew():
    back_off = BackOff()
    for _ in range(6):
        back_off.after(held_s=0.0)
    assert back_off.after(held_s=60.0) <= 0.5


def test_cameras_lost_together_come_back_apart():
    pauses = {round(BackOff().after(0.0), 6) for _ in range(20)}
    assert len(pauses) > 10
    assert max(pauses) == pytest.approx(0.5, abs=0.25)
