import time

import numpy as np
import pytest

from headstart.media.events import SensorSize
from headstart_events.readers.opening import open_recording
from headstart_events.rendering import render, slice_by_count
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


def test_rendering_is_fast_enough_to_keep_up_with_a_camera():
    events = random_events(2_000_000)
    started = time.thread_time()
    render(events)
    # 140 million on one core (docs/events.md); this only catches a loop over events.
    assert len(events) / (time.thread_time() - started) > 2e6
