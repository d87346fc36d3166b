from itertools import pairwise

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.events import Events
from headstart_events.rendering import slice_by_count, slice_by_time
from tests.media.synthetic import SENSOR, random_events


def test_slices_of_equal_count_leave_the_remainder_to_the_last():
    slices = slice_by_count(random_events(103), 5)
    assert [len(s) for s in slices] == [20, 20, 20, 20, 23]


@pytest.mark.parametrize("num_events", [0, 3, 5, 1000])
@pytest.mark.parametrize("cut", [slice_by_count, slice_by_time])
def test_slices_join_to_the_whole(cut, num_events):
    events = random_events(num_events)
    assert Events.concatenate(cut(events, 5)).digest() == events.digest()


def test_slices_of_equal_time_cover_equal_time():
    events = random_events(10_000, duration_us=50_000)
    start, stop = int(events.t[0]), int(events.t[-1]) + 1
    edges = [start + (stop - start) * index // 5 for index in range(6)]
    for piece, (a, b) in zip(slice_by_time(events, 5), pairwise(edges), strict=True):
        assert len(piece) == np.count_nonzero((events.t >= a) & (events.t < b))


def test_a_cut_that_cannot_be_is_refused():
    with pytest.raises(MediaError):
        slice_by_count(random_events(5), 0)
    with pytest.raises(MediaError):
        slice_by_time(random_events(5), 0)
    assert [len(s) for s in slice_by_time(Events.empty(SENSOR), 3)] == [0, 0, 0]
