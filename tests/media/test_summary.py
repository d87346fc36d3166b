import numpy as np
import pytest

from headstart_events.summary import NUM_BINS, Summary
from tests.media.synthetic import random_events


@pytest.mark.parametrize("duration_us", [1, 300, 50_000, 3_600_000_000])
def test_a_summary_in_pieces_equals_one_of_the_whole(duration_us):
    events = random_events(20_000, start_us=51_836_949_776, duration_us=duration_us)
    whole = Summary.of([events])
    pieces = Summary.of([events[:3], events[3:3], events[3:19_990], events[19_990:]])
    assert (whole.num_events, whole.num_brighter) == (20_000, np.count_nonzero(events.p))
    assert (whole.first_us, whole.last_us) == (events.t[0], events.t[-1])
    assert whole.x_range == pieces.x_range == (events.x.min(), events.x.max())
    assert whole.y_range == pieces.y_range == (events.y.min(), events.y.max())
    assert pieces.bin_us == whole.bin_us
    assert np.array_equal(pieces.counts, whole.counts)
    assert whole.counts.sum() == 20_000
    assert len(whole.counts) <= NUM_BINS


def test_rates_over_time_are_those_of_a_steady_stream():
    summary = Summary.of([random_events(100_000, duration_us=1_000_000)])
    assert summary.rate_hz == pytest.approx(100_000, rel=0.01)
    assert summary.rates_hz(20) == pytest.approx(np.full(20, 100_000), rel=0.1)


def test_nothing_has_a_summary_too():
    summary = Summary.of([])
    assert (summary.num_events, summary.rate_hz, len(summary.rates_hz(10))) == (0, 0.0, 0)
