"""What counts as change on a stream: more than it usually changes."""

import numpy as np

from headstart.engine.front_end import MAX_STREAMS, SceneChange
from headstart.media.events import Events, SensorSize
from headstart.speculation.drafter import StreamKey

SENSOR = SensorSize(80, 60)
CAMERA, OTHER = StreamKey("", "camera"), StreamKey("", "other")


def window(rng, start=0, stop=80):
    return Events.checked(
        rng.integers(start, stop, 2000),
        rng.integers(0, SENSOR.height, 2000),
        np.sort(rng.integers(0, 50_000, 2000)),
        rng.integers(0, 2, 2000),
        SENSOR,
    )


def test_a_first_clip_and_one_without_events_change_nothing(rng):
    scenes = SceneChange()
    assert scenes.change(CAMERA, window(rng)) == 0
    assert scenes.change(CAMERA, None) == 0
    assert scenes.change(CAMERA, Events.empty(SENSOR)) == 0
    assert scenes.change(OTHER, window(rng, 0, 10)) == 0


def test_a_steady_camera_has_no_change_until_the_scene_does(rng):
    scenes = SceneChange()
    changes = [scenes.change(CAMERA, window(rng, 0, 40)) for _ in range(10)]
    assert max(changes) == 0
    assert scenes.change(CAMERA, window(rng, 40, 80)) > 0.3


def test_what_always_changes_counts_less_and_less(rng):
    scenes = SceneChange()
    sides = [(0, 40), (40, 80)]
    changes = [scenes.change(CAMERA, window(rng, *sides[i % 2])) for i in range(40)]
    assert changes[1] > 0.3
    assert changes[-1] < 0.1


def test_streams_are_forgotten_when_there_are_too_many(rng):
    scenes, events = SceneChange(), window(rng)
    for number in range(MAX_STREAMS + 10):
        scenes.change(StreamKey(str(number % 3), str(number)), events)
    assert len(scenes._last) == MAX_STREAMS


def test_a_tenant_of_many_streams_makes_nobody_else_forget(rng):
    scenes, events = SceneChange(), window(rng, 0, 40)
    for _ in range(3):
        scenes.change(CAMERA, events)
    for number in range(MAX_STREAMS + 10):
        scenes.change(StreamKey("loud", str(number)), events)
    assert scenes.change(CAMERA, window(rng, 40, 80)) > 0.3
