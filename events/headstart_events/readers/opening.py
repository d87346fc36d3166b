"""Opens an event file of any format, chosen by its first bytes, or else by its suffix."""

import importlib
import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.readers import hdf5_file
from headstart_events.readers.aedat4 import open_aedat4
from headstart_events.readers.csv_table import open_csv
from headstart_events.readers.dsec import open_dsec
from headstart_events.readers.numpy_file import open_npy, open_npz
from headstart_events.readers.prophesee import open_dat, open_raw
from headstart_events.recording import (
    DEFAULT_MAX_EVENTS,
    Content,
    Opening,
    Recording,
    damage_reported,
)

Reader = Callable[[Opening], Recording]

SUFFIXES = (".h5", ".hdf5", ".npz", ".npy", ".raw", ".dat", ".aedat4", ".csv")
"""Every suffix of an event file that is read, in lower case."""

_BY_MAGIC: dict[bytes, Reader] = {
    b"\x93NUMPY": open_npy,
    b"PK\x03\x04": open_npz,
    b"\x89HDF\r\n\x1a\n": open_dsec,
    b"#!AER-DAT4": open_aedat4,
}
_BY_SUFFIX: dict[str, Reader] = {".csv": open_csv, ".dat": open_dat, ".raw": open_raw}
_HEAD_BYTES = 16


def reader_of(head: bytes, suffix: str) -> Reader | None:
    """The reader for a file that starts with ``head``, or None for a format that is not read."""
    for magic, reader in _BY_MAGIC.items():
        if head.startswith(magic):
            return reader
    return _BY_SUFFIX.get(suffix.lower())


def open_recording(
    path: str | Path,
    sensor: SensorSize | None = None,
    max_events: int = DEFAULT_MAX_EVENTS,
    sort: bool = False,
    content: Content | None = None,
    allow_pickle: bool = True,
) -> Recording:
    """Open a recording of events of any format this package reads; see `Opening`."""
    opening = Opening(Path(path), sensor, max_events, sort, content, allow_pickle)
    if content is None and not opening.path.is_file():
        raise MediaError(f"{path} is not a file; check the path")
    with damage_reported(opening.path):
        with opening.open() as file:
            reader = reader_of(file.read(_HEAD_BYTES), opening.path.suffix)
        if reader is not None:
            return reader(opening)
    raise MediaError(
        f"{path} is not an event recording this package knows; "
        f"give one ending in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    )


def preload() -> None:
    """Import everything that the readers import at their first use.

    A sandboxed process calls it once, before it gives up the right to open files. Python and its
    packages import many things late (codecs for names in an archive, parsers of headers, Blosc), so
    this reads a tiny recording of each format from memory, and damaged ones. Packages that are
    missing are skipped.
    """
    for package in ("lz4.frame", "zstandard"):
        with suppress(ImportError):
            importlib.import_module(package)
    with suppress(MediaError):  # without h5py, such files are refused with what to install
        hdf5_file.preload()
    for name, content in _recordings():
        for damaged in (content, content[: len(content) * 3 // 4], content[:40] + bytes(200)):
            with (
                suppress(MediaError),
                open_recording(name, SensorSize(8, 8), content=damaged) as recording,
            ):
                recording.read_all()


def _recordings() -> list[tuple[str, bytes]]:
    columns = {name: np.arange(4) // 2 for name in "xytp"}
    archive, table, pickled = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez_compressed(archive, **columns)  # type: ignore[arg-type] # taken for allow_pickle
    np.save(table, np.zeros(4, dtype=[(name, "<i8") for name in "xytp"]))
    np.save(pickled, np.array(columns, dtype=object), allow_pickle=True)
    return [
        ("events.npz", archive.getvalue()),
        ("events.npy", table.getvalue()),
        ("events.npy", pickled.getvalue()),
        ("events.csv", b"t,x,y,p\n1,1,1,1\n\n2,2,2,0\n"),
        ("events.raw", b"% evt 3.0\n" + bytes(64)),
        ("events.raw", b"% evt 2.0\n" + bytes(64)),
        ("events.dat", b"% Version 2\n\x0c\x08" + bytes(64)),
        ("events.aedat4", b"#!AER-DAT4.0\r\n" + bytes(64)),
        ("events.txt", b""),
    ]
