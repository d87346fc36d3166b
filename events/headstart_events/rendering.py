"""Cuts events into slices, and renders them for a vision model, as pictures or a voxel grid."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import Events

# Events rendered at a time; the temporary arrays of this many stay in a core's cache.
BLOCK = 1 << 16
MAX_VOXELS = 1 << 28


@dataclass(frozen=True)
class Palette:
    """The RGB colours of a picture of events."""

    background: tuple[int, int, int]
    darker: tuple[int, int, int]
    brighter: tuple[int, int, int]


EVENTGPT_PALETTE = Palette(background=(255, 255, 255), darker=(0, 0, 255), brighter=(255, 0, 0))
"""The colours EventGPT was trained on: white, blue for darker, red for brighter."""


def render(events: Events, palette: Palette = EVENTGPT_PALETTE) -> NDArray[np.uint8]:
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
    colours = np.array([palette.background, palette.darker, palette.brighter], dtype=np.uint8)
    picture: NDArray[np.uint8] = colours[last].reshape(height, width, 3)
    return picture


def voxel_grid(events: Events, num_bins: int) -> NDArray[np.float32]:
    """Add up polarities (+1, -1) in time bins, float32 [num_bins, height, width].

    The first event is in the first bin and the last in the last. An event between two bins is
    divided between them by distance.
    """
    width, height = events.sensor.width, events.sensor.height
    num_voxels = num_bins * height * width
    if num_bins < 1 or num_voxels > MAX_VOXELS:
        raise MediaError(
            f"{num_bins} bins of {events.sensor} cannot be built; "
            f"ask for 1 to {MAX_VOXELS // (height * width)} bins"
        )
    grid = np.zeros(num_voxels, dtype=np.float64)
    scale = (num_bins - 1) / max(events.duration_us, 1)
    for start in range(0, len(events), BLOCK):
        block = slice(start, start + BLOCK)
        position = (events.t[block] - events.t[0]) * scale
        early = np.minimum(position.astype(np.intp), max(num_bins - 2, 0))
        late_share = position - early
        sign = np.where(events.p[block], 1.0, -1.0)
        pixels = events.y[block].astype(np.intp) * width + events.x[block]
        voxels = early * (height * width) + pixels
        np.add.at(grid, voxels, sign * (1.0 - late_share))
        if num_bins > 1:
            np.add.at(grid, voxels + height * width, sign * late_share)
    return grid.astype(np.float32).reshape(num_bins, height, width)


def slice_by_count(events: Events, num_slices: int) -> tuple[Events, ...]:
    """Cut into slices of equally many events; the last one has the remainder too."""
    _check(num_slices)
    size = len(events) // num_slices
    starts = [index * size for index in range(num_slices)]
    stops = [*starts[1:], len(events)]
    return tuple(events[start:stop] for start, stop in zip(starts, stops, strict=True))


def slice_by_time(
    events: Events, num_slices: int, start_us: int | None = None, stop_us: int | None = None
) -> tuple[Events, ...]:
    """Cut ``[start_us, stop_us)`` into slices of equal duration, rounded down to microseconds.

    The default is from the first event to just after the last.
    """
    _check(num_slices)
    if not len(events):
        return (events,) * num_slices
    start = int(events.t[0]) if start_us is None else start_us
    stop = int(events.t[-1]) + 1 if stop_us is None else stop_us
    if stop <= start:
        raise MediaError(f"the window {start} to {stop} us is empty; give a stop after the start")
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
