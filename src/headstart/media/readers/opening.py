"""Which reader a file needs, from its first bytes, and from its suffix where bytes do not tell."""

from collections.abc import Callable
from pathlib import Path

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart.media.readers.aedat4 import open_aedat4
from headstart.media.readers.csv_table import open_csv
from headstart.media.readers.dat import open_dat
from headstart.media.readers.dsec import open_dsec
from headstart.media.readers.numpy_file import open_npy, open_npz
from headstart.media.readers.raw import open_raw
from headstart.media.recording import (
    DEFAULT_MAX_EVENTS,
    Content,
    Opening,
    Recording,
    damage_reported,
)

MAGIC: dict[bytes, Callable[[Opening], Recording]] = {
    b"\x93NUMPY": open_npy,
    b"PK\x03\x04": open_npz,
    b"\x89HDF\r\n\x1a\n": open_dsec,
    b"#!AER-DAT4": open_aedat4,
}
SUFFIX: dict[str, Callable[[Opening], Recording]] = {
    ".csv": open_csv,
    ".dat": open_dat,
    ".raw": open_raw,
}
READABLE = ".npy, .npz, .h5, .hdf5, .raw, .dat, .aedat4 or .csv"


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
            head = file.read(16)
        for magic, reader in MAGIC.items():
            if head.startswith(magic):
                return reader(opening)
        if reader_by_suffix := SUFFIX.get(opening.path.suffix.lower()):
            return reader_by_suffix(opening)
    raise MediaError(
        f"{path} is not an event recording this package knows; give one ending in {READABLE}"
    )
