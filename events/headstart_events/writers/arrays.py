"""Writes npz, CSV, and HDF5 in the layout of DSEC."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart_events.recording import not_installed

CHUNK_EVENTS = 1 << 16


def write_npz(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    """Write arrays x, y, t, p and sensor; all events are in memory at once."""
    events = Events.concatenate([Events.empty(sensor), *blocks])
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            x=events.x,
            y=events.y,
            t=events.t,
            p=events.p,
            sensor=np.array([sensor.width, sensor.height]),
        )


def write_csv(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    """Write one event a line; the column names state the sensor's size."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(f"t,x@{sensor.width},y@{sensor.height},p\n")
        for events in blocks:
            rows = zip(
                events.t.tolist(),
                events.x.tolist(),
                events.y.tolist(),
                events.p.astype(np.uint8).tolist(),
                strict=True,
            )
            file.writelines(f"{t},{x},{y},{p}\n" for t, x, y, p in rows)


def write_dsec(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    """Write HDF5 in DSEC's layout, packed with Blosc, a block at a time."""
    try:
        import h5py
        import hdf5plugin
    except ImportError as error:
        raise not_installed("writing HDF5", error.name) from error
    packing = hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=hdf5plugin.Blosc.SHUFFLE)
    dtypes = {"x": "<u2", "y": "<u2", "t": "<u4", "p": "|u1"}
    with h5py.File(path, "w") as file:
        columns = {
            name: file.create_dataset(
                f"events/{name}",
                shape=(0,),
                maxshape=(None,),
                chunks=(CHUNK_EVENTS,),
                dtype=dtype,
                **packing,
            )
            for name, dtype in dtypes.items()
        }
        index = _MillisecondIndex()
        offset_us = 0
        num_written = 0
        for events in blocks:
            if not len(events):
                continue
            if num_written == 0:
                offset_us = int(events.t[0])
            t = events.t - offset_us
            if t[-1] >= 2**32:
                raise MediaError("DSEC's layout holds 71 minutes; write .npz or .raw instead")
            index.add(t, num_written)
            for name, values in (("x", events.x), ("y", events.y), ("t", t), ("p", events.p)):
                columns[name].resize((num_written + len(t),))
                columns[name][num_written:] = values.astype(dtypes[name])
            num_written += len(t)
        file.create_dataset("ms_to_idx", data=index.entries(num_written))
        file.create_dataset("t_offset", data=np.int64(offset_us))
        file.attrs["sensor_width"] = sensor.width
        file.attrs["sensor_height"] = sensor.height


class _MillisecondIndex:
    """Counts, for each millisecond from zero, the events before it."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._num_entries = 0

    def add(self, t: Any, num_before: int) -> None:
        """Add the next times, after ``num_before`` earlier ones."""
        stop = int(t[-1]) // 1000 + 1
        if stop > self._num_entries:
            edges = np.arange(self._num_entries, stop) * 1000
            self._pieces.append(np.searchsorted(t, edges) + num_before)
            self._num_entries = stop

    def entries(self, num_events: int) -> Any:
        """The index, with the number of all events as its last entry."""
        return np.concatenate([*self._pieces, [num_events]]).astype(np.uint64)
