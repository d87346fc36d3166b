"""Random clips with events beside their frames."""

import numpy as np

from headstart import Clip, Video
from headstart.media.events import Events, SensorSize
from tests.models.oracle import random_clip


def clip_with_events(rng, num_events=2000):
    """The frames, and the clip of both."""
    sensor = SensorSize(96, 72)
    events = Events.checked(
        rng.integers(0, sensor.width, num_events),
        rng.integers(0, sensor.height, num_events),
        # Longer than the event model can look at: it takes the newest part.
        np.sort(rng.integers(0, 400_000, num_events)),
        rng.integers(0, 2, num_events),
        sensor,
    )
    frames = random_clip(rng)
    return frames, Clip(Video.from_frames(frames, fps=8), events)
