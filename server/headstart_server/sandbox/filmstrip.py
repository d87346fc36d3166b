"""Draws a recording of events as one tall PNG for the page: frames from top to bottom."""

import io
from itertools import pairwise

import numpy as np
from PIL import Image

from headstart.media.events import Events, SensorSize
from headstart_events.rendering import render

NUM_FRAMES = 32  # page.html counts on it
MAX_SIDE = 320


def filmstrip(events: Events) -> bytes:
    """The PNG; each frame shows an equal part of the recording's time."""
    start_us = int(events.t[0]) if len(events) else 0
    edges = np.linspace(start_us, start_us + events.duration_us + 1, NUM_FRAMES + 1).astype(int)
    small = _thinned(events)
    frames = [render(small.between(int(start), int(stop))) for start, stop in pairwise(edges)]
    file = io.BytesIO()
    Image.fromarray(np.concatenate(frames)).quantize(8).save(file, "PNG")
    return file.getvalue()


def _thinned(events: Events) -> Events:
    """Keep every nth pixel, so that neither side has more than `MAX_SIDE` of them."""
    sensor = events.sensor
    scale = -(-max(sensor.width, sensor.height) // MAX_SIDE)
    kept = (events.x % scale == 0) & (events.y % scale == 0)
    size = SensorSize(-(-sensor.width // scale), -(-sensor.height // scale))
    x, y = events.x[kept] // scale, events.y[kept] // scale
    return Events(x.astype(np.uint16), y.astype(np.uint16), events.t[kept], events.p[kept], size)
