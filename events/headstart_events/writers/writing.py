"""Chooses the writer of an event file by its suffix."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart_events.recording import not_installed
from headstart_events.writers.arrays import write_csv, write_dsec, write_npz
from headstart_events.writers.prophesee import write_dat, write_evt2, write_evt3

MAX_AEDAT4_SIDE = 32_768


def write_aedat4(path: Path, blocks: Iterator[Events], sensor: SensorSize) -> None:
    try:
        from faery.events_stream import EVENTS_DTYPE
        from faery.file_encoder import events_to_file
    except ImportError as error:
        raise not_installed("writing AEDAT4", "faery") from error

    if max(sensor.width, sensor.height) > MAX_AEDAT4_SIDE:
        raise MediaError("AEDAT4 holds sensors up to 32768 a side; write .npz or .h5 instead")

    def tables() -> Iterator[np.ndarray[tuple[int], np.dtype[np.void]]]:
        for events in blocks:
            if len(events) and events.t[0] < 0:
                raise MediaError("AEDAT4 holds no times before zero; write .npz or .h5 instead")
            table = np.empty(len(events), dtype=EVENTS_DTYPE)
            table["t"], table["x"], table["y"], table["on"] = events.t, events.x, events.y, events.p
            yield table

    events_to_file(
        tables(), path, (sensor.width, sensor.height), file_type="aedat", use_write_suffix=False
    )


Writer = Callable[[Path, Iterator[Events], SensorSize], None]
WRITERS: dict[str, Writer] = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".h5": write_dsec,
    ".hdf5": write_dsec,
    ".raw": write_evt3,
    ".evt2.raw": write_evt2,
    ".dat": write_dat,
    ".aedat4": write_aedat4,
}


def write_recording(path: str | Path, blocks: Iterable[Events], sensor: SensorSize) -> int:
    """Write pieces of a recording, in order, in the format that the suffix of ``path`` names.

    Returns how many events there were. A file that could not be finished is removed.
    """
    target = Path(path)
    writer = WRITERS.get("".join(target.suffixes[-2:]).lower()) or WRITERS.get(
        target.suffix.lower()
    )
    if writer is None:
        raise MediaError(f"{path} has no suffix of a format written here; use {', '.join(WRITERS)}")
    partial = target.with_name(f"{target.name}.partial")
    num_events = 0

    def counted() -> Iterator[Events]:
        nonlocal num_events
        for events in blocks:
            num_events += len(events)
            yield events

    try:
        writer(partial, counted(), sensor)
        partial.replace(target)
    except OSError as error:
        raise MediaError(f"cannot write {path}: {error}; choose a writable path") from error
    finally:
        partial.unlink(missing_ok=True)
    return num_events
