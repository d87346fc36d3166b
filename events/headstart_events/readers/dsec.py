"""HDF5 in the layout of DSEC: events/{x,y,t,p}, ms_to_idx, t_offset; and its rectify map.

A window is found through ``ms_to_idx`` and only its rows are read, so that a window of an hour
costs no more than one of a second. A file on disk is read through the helper process of
``hdf5_client``. A recording given as bytes is read in this process, which must then be a sandbox:
it has limits already, and may not be allowed to start another process.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart_events.readers.hdf5_client import CLIENT
from headstart_events.readers.hdf5_file import HdfFile
from headstart_events.recording import Columns, Opening, Recording, damage_reported

BLOCK_EVENTS = 1 << 20
SEARCH_EVENTS = 1 << 16


class Hdf5Content:
    """Has the calls of `Hdf5Client`, for one recording's bytes: all paths name those."""

    def __init__(self, opening: Opening) -> None:
        self._file = HdfFile(opening.open(), opening.num_bytes)

    def describe(self, path: Path) -> dict[str, Any]:
        return self._file.describe()

    def read(self, path: Path, column: str, start: int, stop: int) -> NDArray[Any]:
        return self._file.column(column).read(start, stop)

    def close_file(self, path: Path) -> None:
        self._file.close()


def open_dsec(opening: Opening) -> Recording:
    return DsecRecording(opening)


class DsecRecording(Recording):
    """An open HDF5 file. Times are ``events/t`` plus ``t_offset``."""

    def __init__(self, opening: Opening) -> None:
        self.opening, self.format = opening, "HDF5 in DSEC's layout"
        self._access = CLIENT if opening.content is None else Hdf5Content(opening)
        described = self._access.describe(opening.path)
        self.num_events: int = described["num_events"]
        self._num_ms: int = described["num_ms"]
        self._offset_us: int = described["offset_us"]
        if abs(self._offset_us) >= MAX_TIME_US // 2:
            raise MediaError(f"its t_offset is {self._offset_us}, which is no time: copy it again")
        sides = described["sensor"]
        self.sensor = opening.resolve_sensor(SensorSize(*sides) if sides else None)

    def columns(self) -> Iterator[Columns]:
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
        return self._time(0)

    def close(self) -> None:
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


@dataclass(frozen=True, eq=False)
class RectifyMap:
    """float32 [height, width, 2]: the rectified x and y of each pixel."""

    places: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.places.ndim != 3 or self.places.shape[2] != 2:
            raise MediaError(f"a rectify map is [height, width, 2], not {list(self.places.shape)}")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        if not Path(path).is_file():
            raise MediaError(f"{path} is not a file; check the path")
        with damage_reported(Path(path)):
            places = cls(CLIENT.rectify_map(Path(path)))
            CLIENT.close_file(Path(path))
            return places

    def apply(self, events: Events) -> Events:
        """Move events to their rectified pixels, rounded, and drop those outside the sensor."""
        size = (events.sensor.height, events.sensor.width)
        if self.places.shape[:2] != size:
            raise MediaError(
                f"the map is of {self.places.shape[1]}x{self.places.shape[0]} and the events of "
                f"{events.sensor}; take both of the same sensor"
            )
        x, y = np.rint(self.places[events.y, events.x]).T
        inside = (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])
        return Events(
            x[inside].astype(np.uint16),
            y[inside].astype(np.uint16),
            events.t[inside],
            events.p[inside],
            events.sensor,
        )
