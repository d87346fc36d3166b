import time

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart_events.readers.opening import open_recording
from headstart_events.rendering import Palette, render, slice_by_count, voxel_grid
from tests.media.samples import sample
from tests.media.synthetic import SENSOR, random_events


def painted_one_by_one(events):
    """EventGPT's picture, an event at a time."""
    canvas = np.full((events.sensor.height, events.sensor.width, 3), 255, dtype=np.uint8)
    for x, y, p in zip(events.x.tolist(), events.y.tolist(), events.p.tolist(), strict=True):
        canvas[y, x] = (255, 0, 0) if p else (0, 0, 255)
    return canvas


@pytest.mark.parametrize("num_events", [0, 1, 200_000])
def test_a_rendered_slice_equals_painting_event_by_event(num_events):
    events = random_events(num_events, sensor=SensorSize(160, 90))
    for piece in slice_by_count(events, 5):
        assert np.array_equal(render(piece), painted_one_by_one(piece))


@pytest.mark.parametrize(
    "name", ["eventgpt-sample1.npy", "dsec-interlaken-000089.npy", "dsec-interlaken-000099.npy"]
)
def test_rendered_samples_equal_painting_event_by_event(name):
    events = open_recording(sample(name), sensor=SENSOR).read_all()
    for piece in slice_by_count(events, 5):
        assert np.array_equal(render(piece), painted_one_by_one(piece))


def test_a_palette_is_the_callers():
    events = random_events(1)
    picture = render(events, Palette((0, 0, 0), (1, 2, 3), (4, 5, 6)))
    expected = (4, 5, 6) if events.p[0] else (1, 2, 3)
    assert tuple(picture[events.y[0], events.x[0]]) == expected
    assert np.count_nonzero(picture.any(axis=2)) == 1


def test_rendering_is_fast_enough_to_keep_up_with_a_camera():
    events = random_events(2_000_000)
    started = time.thread_time()
    render(events)
    # 140 million on one core (docs/events.md); this only catches a loop over events.
    assert len(events) / (time.thread_time() - started) > 2e6


def test_a_voxel_grid_shares_each_event_between_its_two_bins():
    t = np.array([0, 250, 1000])
    ones = np.ones(3, dtype=int)
    events = Events.checked(ones, ones, t, np.array([1, 0, 1]), SensorSize(4, 3))
    grid = voxel_grid(events, 3)
    assert grid.shape == (3, 3, 4)
    assert grid.dtype == np.float32
    assert grid[:, 1, 1].tolist() == [1.0 - 0.5, -0.5, 1.0]
    assert np.count_nonzero(grid) == 3


@pytest.mark.parametrize("num_bins", [1, 2, 5])
def test_a_voxel_grid_sums_to_the_balance_of_polarity(num_bins):
    events = random_events(50_000, sensor=SensorSize(64, 48))
    balance = 2 * np.count_nonzero(events.p) - len(events)
    assert voxel_grid(events, num_bins).sum(dtype=np.float64) == pytest.approx(balance, abs=0.1)
    assert voxel_grid(events[:0], num_bins).any() == False  # noqa: E712 (a numpy bool)


def test_a_voxel_grid_that_cannot_be_is_refused():
    with pytest.raises(MediaError):
        voxel_grid(random_events(5), 0)
    with pytest.raises(MediaError):
        voxel_grid(random_events(5), 10**9)
