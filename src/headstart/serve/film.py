"""A recording of events as one tall picture, for the page: a window of time below the other."""

import io
from itertools import pairwise

import numpy as np
from PIL import Image

from headstart.media.events import Events
from headstart.media.rendering import render

NUM_FRAMES = 32  # page.html counts on it
MAX_WIDTH = 320


def film(events: Events) -> bytes:
    """PNG; each frame shows an equal part of the time."""
    scale = max(1, -(-events.sensor.width // MAX_WIDTH))
    start_us = int(events.t[0]) if len(events) else 0
    edges = np.linspace(start_us, start_us + events.duration_us + 1, NUM_FRAMES + 1).astype(int)
    frames = [
        render(events.between(int(start), int(stop)))[::scale, ::scale]
        for start, stop in pairwise(edges)
    ]
    file = io.BytesIO()
    Image.fromarray(np.concatenate(frames)).quantize(8).save(file, "PNG")
    return file.getvalue()
