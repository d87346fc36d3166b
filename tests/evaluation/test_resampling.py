"""Intervals: what they hold, and that two drafters are compared on the same draws."""

import numpy as np
import pytest

from headstart_research.evaluation.resampling import Tally, interval, interval_of_difference


def tally(tokens, passes):
    return Tally(np.array(tokens), np.array(passes))


def test_where_all_units_are_alike_there_is_no_doubt():
    found = interval(tally([12] * 9, [3] * 9))
    assert (found.low, found.high) == (4, 4)


def test_tokens_a_pass_is_of_all_together_not_the_mean_of_each():
    one = tally([100, 10], [10, 10])
    assert one.tokens_per_pass == 5.5
    found = interval(one)
    assert (found.low, found.high) == (1, 10)


def test_the_interval_holds_the_mean_of_a_known_law():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(60):
        found = interval(tally(rng.poisson(40, 50), np.full(50, 10)))
        held += found.low <= 4 <= found.high
    assert held >= 50  # 57 of 60 are expected


def test_a_difference_is_paired():
    rng = np.random.default_rng(1)
    tokens = rng.integers(5, 100, 40)
    passes = rng.integers(1, 50, 40)
    same = interval_of_difference([(Tally(tokens, passes), Tally(tokens, passes))])
    assert (same.low, same.high) == (0, 0)
    more = interval_of_difference([(Tally(2 * tokens, passes), Tally(tokens, passes))])
    alone = interval(Tally(tokens, passes))
    assert (more.low, more.high) == pytest.approx((alone.low, alone.high))


def test_differences_of_several_pairs_are_averaged_on_the_same_draws():
    rng = np.random.default_rng(2)
    tokens, passes = rng.integers(5, 100, 40), rng.integers(1, 50, 40)
    one, double = Tally(tokens, passes), Tally(2 * tokens, passes)
    nothing = interval_of_difference([(double, one), (one, double)])
    assert (nothing.low, nothing.high) == pytest.approx((0, 0))
    half = interval_of_difference([(double, one), (one, one)])
    alone = interval(one)
    assert (half.low, half.high) == pytest.approx((alone.low / 2, alone.high / 2))


def test_streams_whose_answers_are_alike_leave_more_doubt_than_their_answers():
    tokens, passes = np.full(60, 40), np.repeat([4, 10, 20], 20)
    answers = Tally(tokens, passes)
    streams = answers.by(np.repeat([0, 1, 2], 20))
    assert streams.tokens.tolist() == [800] * 3
    assert streams.passes.tolist() == [80, 200, 400]
    assert streams.tokens_per_pass == answers.tokens_per_pass
    by_answer, by_stream = interval(answers), interval(streams)
    assert by_stream.low < by_answer.low < by_answer.high < by_stream.high


def test_a_single_unit_says_nothing_of_others():
    assert interval(tally([4], [2])) is None
    assert interval_of_difference([(tally([4], [2]), tally([4], [1]))]) is None
