"""Cuts events into consecutive slices, by number or by time, or to the most recent."""

from itertools import pairwise

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import Events


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
