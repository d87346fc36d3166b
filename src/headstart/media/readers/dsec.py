"""HDF5 in the layout of DSEC: events/{x,y,t,p}, ms_to_idx, t_offset.

A window is found through ``ms_to_idx`` and read by itself, so an hour costs no more than a
second. libhdf5 unpacks what a file tells it to; what it may be told is checked here first.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart.media.recording import Columns, Opening, Recording, damage_reported

BLOCK_EVENTS = 1 << 20
MAX_CHUNK_BYTES = 1 << 26
SHUFFLE, DEFLATE, BLOSC = 2, 1, 32001
COLUMN_NAMES = ("x", "y", "t", "p")


def open_dsec(opening: Opening) -> Recording:
    """An HDF5 file in the layout of DSEC."""
    try:
        import h5py
        import hdf5plugin  # noqa: F401 (registers Blosc, which DSEC is packed with)
    except ImportError as error:
        raise MediaError(
            f"reading HDF5 needs {error.name}, which is not installed: "
            "pip install 'headstart[events]'"
        ) from error
    file = h5py.File(opening.path, "r")
    try:
        return DsecRecording(opening, file)
    except BaseException:
        file.close()
        raise


class DsecRecording(Recording):
    """An open HDF5 file. Times are ``events/t`` plus ``t_offset``."""

    def __init__(self, opening: Opening, file: Any) -> None:
        self.opening, self._file = opening, file
        num_bytes = opening.path.stat().st_size
        self._columns = {
            name: HdfColumn(file, f"events/{name}", num_bytes) for name in COLUMN_NAMES
        }
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) != 1:
            raise MediaError(f"its columns differ in length ({sorted(lengths)}); copy it again")
        self.num_events: int = lengths.pop()
        self._offset_us = _read_number(file, "t_offset")
        self._ms_to_idx = None
        if "ms_to_idx" in file:
            self._ms_to_idx = HdfColumn(file, "ms_to_idx", num_bytes)
        self.sensor = opening.resolve_sensor(_stated_sensor(file))

    def columns(self) -> Iterator[Columns]:
        """Read from the file as they are taken."""
        for start in range(0, self.num_events, BLOCK_EVENTS):
            yield self._span(start, min(start + BLOCK_EVENTS, self.num_events))

    def read(self, start_us: int, stop_us: int) -> Events:
        """Only the window's own part of the file is read."""
        if self.opening.sort:
            return super().read(start_us, stop_us)  # the index assumes order
        with damage_reported(self.opening.path):
            start, stop = self._find(start_us), self._find(stop_us)
            self.opening.check_count(stop - start)
            if stop <= start:
                return Events.empty(self.sensor)
            x, y, t, p = self._span(start, stop)
            return Events.checked(x, y, t, p, self.sensor)

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
        self._file.close()

    def _span(self, start: int, stop: int) -> Columns:
        x, y, t, p = (self._columns[name].read(start, stop) for name in COLUMN_NAMES)
        if t.dtype.kind != "i" and len(t) and int(t.max()) >= MAX_TIME_US:
            raise MediaError("it states times beyond all years; it is damaged: copy it again")
        return x, y, t.astype(np.int64) + self._offset_us, p

    def _time(self, index: int) -> int:
        with damage_reported(self.opening.path):
            if not 0 <= index < self.num_events:
                raise MediaError("it has no events; choose another recording")
            return int(self._columns["t"].read(index, index + 1)[0]) + self._offset_us

    def _find(self, time_us: int) -> int:
        """The number of events before ``time_us``."""
        start, stop = self._bracket(time_us)
        while stop - start > BLOCK_EVENTS // 16:
            middle = (start + stop) // 2
            if self._time(middle) < time_us:
                start = middle + 1
            else:
                stop = middle
        times = self._columns["t"].read(start, stop)
        return start + int(np.searchsorted(times, time_us - self._offset_us))

    def _bracket(self, time_us: int) -> tuple[int, int]:
        """Where the index says the answer of `_find` lies; checked, since it may be wrong."""
        millisecond = (time_us - self._offset_us) // 1000
        if self._ms_to_idx is None or not 0 <= millisecond < len(self._ms_to_idx):
            return 0, self.num_events
        entries = self._ms_to_idx.read(millisecond, min(millisecond + 2, len(self._ms_to_idx)))
        start = int(entries[0])
        stop = int(entries[1]) if len(entries) == 2 else self.num_events
        if not 0 <= start <= stop <= self.num_events:
            return 0, self.num_events
        if start > 0 and self._time(start - 1) >= time_us:
            return 0, self.num_events
        if stop < self.num_events and self._time(stop) < time_us:
            return 0, self.num_events
        return start, stop


class HdfColumn:
    """One integer dataset [n] of an HDF5 file, admitted only if it can be read safely."""

    def __init__(self, file: Any, name: str, file_bytes: int) -> None:
        self._dataset = dataset = _plain_dataset(file, name)
        if len(dataset.shape) != 1:
            raise MediaError(f"{name} has the shape {dataset.shape}; it must be one column")
        self._length = int(dataset.shape[0])
        num_bytes = self._length * dataset.dtype.itemsize
        filters = filters_of(dataset)
        if dataset.chunks is None:
            if num_bytes > file_bytes:
                raise MediaError(f"{name} declares {num_bytes} bytes in a file of {file_bytes}")
        else:
            self._chunk = int(dataset.chunks[0])
            if not 0 < self._chunk * dataset.dtype.itemsize <= MAX_CHUNK_BYTES:
                raise MediaError(f"{name} is stored in chunks of {self._chunk}; repack it smaller")
            # Chunks that were never written read as zeros without end.
            if dataset.id.get_num_chunks() != -(-self._length // self._chunk):
                raise MediaError(f"{name} lacks some of its chunks; it is damaged: copy it again")
        if filters not in ([], [SHUFFLE], [BLOSC], [SHUFFLE, BLOSC], [DEFLATE], [SHUFFLE, DEFLATE]):
            raise MediaError(
                f"{name} is packed with the HDF5 filters {filters}; "
                "repack it with Blosc, gzip or none, as with h5repack"
            )
        self._filters = filters

    def __len__(self) -> int:
        return self._length

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Values ``start`` to ``stop``, which must lie in the column."""
        if stop <= start:
            return np.empty(0, dtype=self._dataset.dtype)
        if DEFLATE in self._filters:
            first = start // self._chunk
            chunks = [self._inflate(i) for i in range(first, (stop - 1) // self._chunk + 1)]
            whole = np.concatenate(chunks)
            inflated: NDArray[Any] = whole[start - first * self._chunk :][: stop - start]
            return inflated
        if BLOSC in self._filters:
            for index in range(start // self._chunk, (stop - 1) // self._chunk + 1):
                check_blosc_chunk(self._dataset, (index * self._chunk,))
        values: NDArray[Any] = self._dataset[start:stop]
        return values

    def _inflate(self, index: int) -> NDArray[Any]:
        """A gzip chunk, unpacked here: libhdf5 would unpack it to whatever size it grows to."""
        mask, packed = self._dataset.id.read_direct_chunk((index * self._chunk,))
        dtype = self._dataset.dtype
        size = self._chunk * dtype.itemsize
        unpacked = zlib.decompressobj().decompress(packed, size)
        if mask or len(unpacked) != size:
            raise MediaError("a chunk unpacks to the wrong size; it is damaged: copy it again")
        if SHUFFLE in self._filters:
            unpacked = np.frombuffer(unpacked, np.uint8).reshape(dtype.itemsize, -1).T.tobytes()
        return np.frombuffer(unpacked, dtype=dtype)


def filters_of(dataset: Any) -> list[int]:
    """The HDF5 filters a dataset is packed with, in the order they were applied."""
    properties = dataset.id.get_create_plist()
    return [properties.get_filter(index)[0] for index in range(properties.get_nfilters())]


def check_blosc_chunk(dataset: Any, offset: tuple[int, ...]) -> None:
    """Blosc states what a chunk unpacks to, and libhdf5 believes it; see that it is a chunk."""
    mask, packed = dataset.id.read_direct_chunk(offset)
    if mask:
        raise MediaError("a chunk leaves out its filters; repack it, as with h5repack")
    (unpacked_bytes,) = struct.unpack_from("<I", packed, 4)
    if unpacked_bytes != math.prod(dataset.chunks) * dataset.dtype.itemsize:
        raise MediaError(f"a chunk claims to unpack to {unpacked_bytes} bytes; copy it again")


def _plain_dataset(file: Any, name: str) -> Any:
    """A dataset of integers stored in this very file, not linked from elsewhere."""
    import h5py

    place = file
    for part in name.split("/"):
        if not isinstance(place, h5py.Group) or part not in place:
            raise MediaError(f"it has no {name}; it is not in the layout of DSEC")
        if not isinstance(place.get(part, getlink=True), h5py.HardLink):
            raise MediaError(f"its {name} is a link to elsewhere; copy the data into one file")
        place = place[part]
    if not isinstance(place, h5py.Dataset) or place.dtype.kind not in "iub":
        raise MediaError(f"its {name} is not a dataset of integers")
    if place.is_virtual or place.external or place.shape is None:
        raise MediaError(f"its {name} is stored in another file; copy the data into one file")
    return place


def _read_number(file: Any, name: str) -> int:
    if name not in file:
        return 0
    dataset = _plain_dataset(file, name)
    if dataset.shape not in ((), (1,)) or dataset.chunks is not None:
        raise MediaError(f"its {name} is not a single number")
    number = int(np.asarray(dataset[()]).reshape(-1)[0])
    if abs(number) >= MAX_TIME_US // 2:
        raise MediaError(f"its {name} is {number}, which is no time")
    return number


def _stated_sensor(file: Any) -> SensorSize | None:
    """DSEC's own files do not say; those written here do, in two attributes."""
    sides = []
    for name in ("sensor_width", "sensor_height"):
        if name not in file.attrs:
            return None
        attribute = file.attrs.get_id(name)
        if attribute.shape != () or attribute.dtype.kind not in "iu":
            raise MediaError(f"its {name} is not a single number")
        sides.append(int(file.attrs[name]))
    return SensorSize(*sides)
