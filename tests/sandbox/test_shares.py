"""Processor time dealt out to cameras: bounded in all, and the same for each that wants it."""

import gc

import pytest

from headstart.live.sources.confined.shares import MAX_SAVED_S, Shares, dealt


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.mark.parametrize(
    ("amount", "wanted", "parts"),
    [
        (6, [9, 9, 9], [2, 2, 2]),
        (6, [1, 9, 9], [1, 2.5, 2.5]),
        (6, [9, 0, 1], [5, 0, 1]),
        (6, [1, 2, 1], [1, 2, 1]),
        (6, [], []),
    ],
)
def test_nobody_gets_more_than_is_wanted_and_the_rest_is_the_others(amount, wanted, parts):
    assert dealt(amount, wanted) == pytest.approx(parts)


def run(clock, greed, seconds, step_s=0.05):
    """What each camera uses that takes up to ``greed`` processors whenever it may, in the end."""
    used_s, may = dict.fromkeys(greed, 0.0), dict.fromkeys(greed, True)
    num_steps = round(seconds / step_s)
    for step in range(-num_steps, num_steps):
        clock.now_s += step_s
        for share in greed:
            took_s = greed[share] * step_s if may[share] else 0.0
            used_s[share] += took_s if step >= 0 else 0  # at first from what was saved up
            may[share] = share.spend(took_s)
    return [used / seconds for used in used_s.values()]


def test_all_cameras_together_use_no_more_than_is_dealt_out():
    clock = Clock()
    shares = Shares(2.0, clock)
    greed = {shares.share(f"tenant {number}"): 1.0 for number in range(16)}
    assert sum(run(clock, greed, 100)) == pytest.approx(2.0, rel=0.05)


def test_a_tenant_with_many_cameras_takes_nothing_from_one_with_a_single():
    clock = Clock()
    shares = Shares(1.0, clock)
    greedy = {shares.share("greedy"): 1.0 for _ in range(16)}
    (modest,) = modestly = {shares.share("modest"): 0.4}
    *theirs, mine = run(clock, {**greedy, **modestly}, 100)
    assert mine == pytest.approx(0.4, rel=0.02)  # all that it wants
    assert theirs == pytest.approx([0.6 / 16] * 16, rel=0.2)
    assert modest.spend(0)


def test_a_camera_alone_has_what_others_do_not_use():
    clock = Clock()
    shares = Shares(1.0, clock)
    greed = {shares.share("a"): 1.0, shares.share("a"): 0.0, shares.share("b"): 0.0}
    assert run(clock, greed, 100)[0] == pytest.approx(1.0, rel=0.02)


def test_time_is_not_saved_up_without_end():
    clock = Clock()
    share = Shares(1.0, clock).share()
    clock.now_s += 3600
    assert share.spend(MAX_SAVED_S - 0.1)
    assert not share.spend(0.2)
    clock.now_s += 0.2
    assert share.spend(0)


def test_a_camera_that_is_gone_gets_nothing():
    clock = Clock()
    shares = Shares(1.0, clock)
    left, gone = shares.share(), shares.share()
    assert not left.spend(10)
    assert not gone.spend(10)
    del gone
    gc.collect()
    clock.now_s += 8.5
    assert left.spend(0)
