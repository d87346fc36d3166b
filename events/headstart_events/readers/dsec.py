"""HDF5 in the layout of DSEC: events/{x,y,t,p}, ms_to_idx, t_offset.

A window is found through ``ms_to_idx`` and only its rows are read, so that a window of an hour
costs no more than one of a second. Calls libhdf5 only through ``hdf5_access``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart_events.readers.hdf5_access import hdf5_access
from headstart_events.recording import Columns, Opening, Recording, damage_reported

BLOCK_EVENTS = 1 << 20
SEARCH_EVENTS = 1 << 16


def open_dsec(opening: Opening) -> Recording:
    """Open an HDF5 file in the layout of DSEC."""
    return DsecRecording(opening)


class DsecRecording(Recording):
    """An open HDF5 file. Times are ``events/t`` plus ``t_offset``."""

    def __init__(self, opening: Opening) -> None:
        self.opening, self.format = opening, "HDF5 in DSEC's layout"
        self._access = hdf5_access(opening)
        described = self._access.describe(opening.path)
        self.num_events: int = described["num_events"]
        self._num_ms: int = described["num_ms"]
        self._offset_us: int = described["offset_us"]
        if abs(self._offset_us) >= MAX_TIME_US // 2:
            raise MediaError(f"its t_offset is {self._offset_us}, which is no time: copy it again")
        sides = described["sensor"]
        self.sensor = opening.resolve_sensor(SensorSize(*sides) if sides else None)

    def columns(self) -> Iterator[Columns]:
        """Read the file a block at a time."""
        return self._spans(0, self.num_events)

    def read(self, start_us: int, stop_us: int) -> Events:
        """Read the window's own part of the file only."""
        if self.opening.sort:
            return super().read(start_us, stop_us)  # the index assumes order
        with damage_reported(self.opening.path):
            start, stop = self._find(start_us), self._find(stop_us)
            self.opening.check_count(stop - start)
            return self._gather(
                Events.checked(x, y, t, p, self.sensor) for x, y, t, p in self._spans(start, stop)
            )

    @property
    def first_us(self) -> int:
        """The time of the first event."""
        return self._time(0)

    @property
    def last_us(self) -> int:
        """The time of the last event."""
        return self._time(self.num_events - 1)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._access.close_file(self.opening.path)

    def _column(self, name: str, start: int, stop: int) -> NDArray[Any]:
        return self._access.read(self.opening.path, name, start, stop)

    def _spans(self, start: int, stop: int) -> Iterator[Columns]:
        for first in range(start, stop, BLOCK_EVENTS):
            after = min(first + BLOCK_EVENTS, stop)
            x, y, t, p = (self._column(f"events/{name}", first, after) for name in "xytp")
            if len(t) and int(t.max()) >= MAX_TIME_US // 2:
                raise MediaError("it states times beyond all years; it is damaged: copy it again")
            yield x, y, t.astype(np.int64) + self._offset_us, p

    def _time(self, index: int) -> int:
        with damage_reported(self.opening.path):
            if not 0 <= index < self.num_events:
                raise MediaError("it has no events; choose another recording")
            return int(self._column("events/t", index, index + 1)[0]) + self._offset_us

    def _find(self, time_us: int) -> int:
        """The number of events before ``time_us``."""
        start, stop = self._bracket(time_us)
        while stop - start > SEARCH_EVENTS:
            middle = (start + stop) // 2
            if self._time(middle) < time_us:
                start = middle + 1
            else:
                stop = middle
        times = self._column("events/t", start, stop).astype(np.int64)
        return start + int(np.searchsorted(times, time_us - self._offset_us))

    def _bracket(self, time_us: int) -> tuple[int, int]:
        """The rows between which ``ms_to_idx`` places the time; all rows where it is wrong."""
        everywhere = 0, self.num_events
        millisecond = (time_us - self._offset_us) // 1000
        if not 0 <= millisecond < self._num_ms:
            return everywhere
        entries = self._column("ms_to_idx", millisecond, min(millisecond + 2, self._num_ms))
        start = int(entries[0])
        stop = int(entries[1]) if len(entries) == 2 else self.num_events
        if not 0 <= start <= stop <= self.num_events:
            return everywhere
        if start > 0 and self._time(start - 1) >= time_us:
            return everywhere
        if stop < self.num_events and self._time(stop) < time_us:
            return everywhere
        return start, stop
