"""A recording of events as one tall picture, for the page: a window of time below the other."""

import io
from itertools import pairwise

import numpy as np
from PIL import Image

from headstart.media.events import Events, SensorSize
from headstart.media.rendering import render

NUM_FRAMES = 32  # page.html counts on it
MAX_SIDE = 320


def film(events: Events) -> bytes:
    """PNG; each frame shows an equal part of the time."""
    start_us = int(events.t[0]) if len(events) else 0
    edges = np.linspace(start_us, start_us + events.duration_us + 1, NUM_FRAMES + 1).astype(int)
    small = _thinned(events)
    frames = [render(small.between(int(start), int(stop))) for start, stop in pairwise(edges)]
    file = io.BytesIO()
    Image.fromarray(np.concatenate(frames)).quantize(8).save(file, "PNG")
    return file.getvalue()


def _thinned(events: Events) -> Events:
    """Of a large sensor every second pixel, or every third: what is not shown is not drawn."""
    sensor = events.sensor
    scale = -(-max(sensor.width, sensor.height) // MAX_SIDE)
    kept = (events.x % scale == 0) & (events.y % scale == 0)
    size = SensorSize(-(-sensor.width // scale), -(-sensor.height // scale))
    x, y = events.x[kept] // scale, events.y[kept] // scale
    return Events(x.astype(np.uint16), y.astype(np.uint16), events.t[kept], events.p[kept], size)
