"""Cuts events into slices, and renders them for a vision model, as pictures."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import Events

# Events rendered at a time; the temporary arrays of this many stay in a core's cache.
BLOCK = 1 << 16
BACKGROUND, DARKER, BRIGHTER = (255, 255, 255), (0, 0, 255), (255, 0, 0)
"""The colours EventGPT was trained on, RGB."""
COLOURS = np.array([BACKGROUND, DARKER, BRIGHTER], dtype=np.uint8)


def render(events: Events) -> NDArray[np.uint8]:
    """Draw events on the whole sensor, [height, width, 3]; each pixel shows its last event."""
    width, height = events.sensor.width, events.sensor.height
    last = np.zeros(height * width, dtype=np.uint8)
    for start in range(0, len(events), BLOCK):
        block = slice(start, start + BLOCK)
        pixels = events.y[block].astype(np.intp)
        pixels *= width
        pixels += events.x[block]
        # Where an index repeats, numpy keeps the last value assigned, which is the newest event.
        last[pixels] = events.p[block].view(np.uint8) + np.uint8(1)
    picture: NDArray[np.uint8] = COLOURS[last].reshape(height, width, 3)
    return picture


def slice_by_count(events: Events, num_slices: int) -> tuple[Events, ...]:
    """Cut into slices of equally many events; the last one has the remainder too."""
    _check(num_slices)
    size = len(events) // num_slices
    starts = [index * size for index in range(num_slices)]
    stops = [*starts[1:], len(events)]
    return tuple(events[start:stop] for start, stop in zip(starts, stops, strict=True))


def slice_by_time(events: Events, num_slices: int) -> tuple[Events, ...]:
    """Cut the time from the first event to just after the last into slices of equal duration.

    They are rounded down to microseconds.
    """
    _check(num_slices)
    if not len(events):
        return (events,) * num_slices
    start, stop = int(events.t[0]), int(events.t[-1]) + 1
    edges = [start + (stop - start) * index // num_slices for index in range(num_slices + 1)]
    positions = np.searchsorted(events.t, edges)
    return tuple(events[int(a) : int(b)] for a, b in pairwise(positions))


def latest(events: Events, duration_us: int) -> Events:
    """The events of the last ``duration_us``, including the last event."""
    if not len(events):
        return events
    stop_us = int(events.t[-1]) + 1
    return events.between(stop_us - duration_us, stop_us)


def _check(num_slices: int) -> None:
    if num_slices < 1:
        raise MediaError(f"{num_slices} slices were asked for; ask for at least one")
