"""Chooses how libhdf5 is called: in a helper process with limits, or in this process.

A file on disk is read through the helper process of ``hdf5_client``. A recording given as bytes is
read in this process, which must then be a sandbox: it has limits already, and may not be allowed
to start another process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from headstart_events.readers.hdf5_client import CLIENT
from headstart_events.readers.hdf5_file import HdfFile
from headstart_events.recording import Opening


class Hdf5Access(Protocol):
    """Reads HDF5 files; every call names the file."""

    def describe(self, path: Path) -> dict[str, Any]:
        """What the file says of itself; see `HdfFile.describe`."""
        ...

    def read(self, path: Path, column: str, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop`` of a column."""
        ...

    def close_file(self, path: Path) -> None:
        """Close a file. Idempotent."""
        ...


class Hdf5Content:
    """Reads one recording's bytes in this process; all paths name those bytes."""

    def __init__(self, opening: Opening) -> None:
        self._file = HdfFile(opening.open(), opening.num_bytes)

    def describe(self, path: Path) -> dict[str, Any]:
        """What the file says of itself; see `HdfFile.describe`."""
        return self._file.describe()

    def read(self, path: Path, column: str, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop`` of a column."""
        return self._file.column(column).read(start, stop)

    def close_file(self, path: Path) -> None:
        """Close the bytes. Idempotent."""
        self._file.close()


def hdf5_access(opening: Opening) -> Hdf5Access:
    """The access to the recording that ``opening`` names."""
    return CLIENT if opening.content is None else Hdf5Content(opening)
