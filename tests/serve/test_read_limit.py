"""How fast one connection is read, by a clock of the test's own."""

import pytest

from headstart_server.limits import Limits
from headstart_server.live.socket import COUNTED_BYTES, ReadLimit
from tests.serve.test_quota import Clock


def num_read(limit: ReadLimit, clock: Clock, seconds: float, num_bytes: int = 100) -> int:
    """Messages that are read of a client that sends without end."""
    until_s, count = clock.now_s + seconds, 0
    while (wait_s := limit.wait_s()) <= until_s - clock.now_s:
        clock.now_s += wait_s
        limit.count(num_bytes)
        count += 1
    clock.now_s = until_s
    return count


def test_four_messages_are_read_for_each_frame_and_a_seconds_worth_at_once():
    clock = Clock()
    limit = ReadLimit(Limits(live_frames_per_minute=600), clock)
    assert num_read(limit, clock, 0.0) == 40
    assert num_read(limit, clock, 10.0) == pytest.approx(400, abs=1)
    clock.now_s += 3600
    assert num_read(limit, clock, 0.0) == 40, "no more is saved up than that"


def test_long_messages_count_more():
    clock = Clock()
    limit = ReadLimit(Limits(live_frames_per_minute=600), clock)
    num_read(limit, clock, 1.0)
    assert num_read(limit, clock, 10.0, COUNTED_BYTES - 1) == pytest.approx(400, abs=1)
    assert num_read(limit, clock, 10.0, 3 * COUNTED_BYTES) == pytest.approx(100, abs=1)


def test_the_smallest_limit_still_reads_one_message_at_a_time():
    clock = Clock()
    limit = ReadLimit(Limits(live_frames_per_minute=1), clock)
    assert num_read(limit, clock, 0.0) == 1
    assert num_read(limit, clock, 60.0) == pytest.approx(4, abs=1)


def test_who_sends_no_faster_never_waits():
    clock = Clock()
    limit = ReadLimit(Limits(live_frames_per_minute=600), clock)
    for _ in range(1000):
        assert limit.wait_s() == 0
        limit.count(2 * COUNTED_BYTES)
        clock.now_s += 0.1
