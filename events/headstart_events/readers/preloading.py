"""Imports everything that the readers import at their first use.

A sandboxed process calls `preload` once before it gives up the right to open files. Python and its
packages import many things late (codecs for names in an archive, parsers of headers, Blosc), so
`preload` lets every reader read a tiny recording and refuse damaged ones.
"""

import importlib
import io
from contextlib import suppress

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.readers import hdf5_file
from headstart_events.readers.opening import open_recording


def preload() -> None:
    """Read a tiny recording of each format from memory; packages that are missing are skipped."""
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
