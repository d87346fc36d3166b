"""Arrivals: the rate that was asked for, at random, the same for everyone who has the seed."""

from itertools import pairwise
from statistics import fmean, stdev

import pytest

from headstart.errors import BenchError
from headstart_research.bench.open_loop import Load, arrivals


def test_every_stream_gets_its_questions_in_turn_and_in_order():
    arriving = arrivals(3, 4, rate=2.0)
    assert [one.stream for one in arriving] == [0, 1, 2] * 4
    assert [one.index for one in arriving] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    times = [one.at_s for one in arriving]
    assert times == sorted(times)
    assert len(set(times)) == 12


@pytest.mark.parametrize("seed", range(5))
def test_the_rate_is_the_one_asked_for_whatever_chance_does(seed):
    arriving = arrivals(16, 12, rate=1.5, seed=seed)
    length_s = 16 * 12 / 1.5
    assert 0.9 * length_s < arriving[-1].at_s <= length_s
    assert arriving[0].at_s >= 0


def test_questions_come_at_random_not_at_equal_distances():
    times = [one.at_s for one in arrivals(16, 200, rate=4.0)]
    gaps = [after - before for before, after in pairwise(times)]
    # Gaps of a Poisson process are as wide on average as they scatter.
    assert stdev(gaps) / fmean(gaps) == pytest.approx(1.0, abs=0.1)
    assert fmean(gaps) == pytest.approx(1 / 4.0, rel=0.02)


def test_a_seed_gives_the_same_times_and_another_seed_others():
    assert arrivals(4, 5, rate=2.0, seed=1) == arrivals(4, 5, rate=2.0, seed=1)
    assert arrivals(4, 5, rate=2.0, seed=1) != arrivals(4, 5, rate=2.0, seed=2)


def test_two_rates_have_the_same_pattern():
    slow, fast = arrivals(4, 5, rate=2.0), arrivals(4, 5, rate=8.0)
    assert [one.at_s for one in slow] == pytest.approx([4 * one.at_s for one in fast])


def test_a_burst_is_several_cameras_at_the_same_moment_at_the_same_mean_rate():
    arriving = arrivals(8, 6, rate=2.0, burst=4)
    times = [one.at_s for one in arriving]
    assert all(len(set(times[start : start + 4])) == 1 for start in range(0, 48, 4))
    assert len(set(times)) == 12
    assert {one.stream for one in arriving[:4]} == {0, 1, 2, 3}
    assert {one.stream for one in arriving[4:8]} == {4, 5, 6, 7}
    assert times[-1] <= 48 / 2.0
    # The last burst has what is left.
    assert len({one.at_s for one in arrivals(3, 1, rate=1.0, burst=2)}) == 2


def test_a_load_names_itself_and_refuses_what_is_none():
    assert Load(0.85).name == "at 0.85"
    assert Load(0.7, burst=8).name == "in bursts"
    assert "8 at the same moment" in Load(0.7, burst=8).words
    for share, burst in ((0.0, 1), (-1.0, 1), (0.5, 0)):
        with pytest.raises(BenchError, match="a share above 0"):
            Load(share, burst)
    with pytest.raises(BenchError, match="a rate above 0"):
        arrivals(2, 2, rate=0.0)
