"""The two ways to libhdf5: through a limited process, or right here.

A file on disk is read through ``hdf5_client``. A recording handed over as bytes is read in this
process: whoever hands over bytes has limited it already, and may have forbidden it to start
another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from headstart.media.readers.hdf5_client import CLIENT
from headstart.media.readers.hdf5_file import HdfFile
from headstart.media.recording import Opening


class Hdf5Access(Protocol):
    """Reads columns of HDF5 files; each question names the file."""

    def describe(self, path: Path) -> dict[str, Any]:
        """What the file says of itself; see `HdfFile.describe`."""
        ...

    def read(self, path: Path, column: str, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop`` of a column."""
        ...

    def close_file(self, path: Path) -> None:
        """Let go of a file. Idempotent."""
        ...


class Hdf5Content:
    """One recording's bytes, read in this process. The paths it is asked of all name them."""

    def __init__(self, opening: Opening) -> None:
        self._file = HdfFile(opening.open(), opening.num_bytes)

    def describe(self, path: Path) -> dict[str, Any]:
        """What the file says of itself; see `HdfFile.describe`."""
        return self._file.describe()

    def read(self, path: Path, column: str, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop`` of a column."""
        return self._file.column(column).read(start, stop)

    def close_file(self, path: Path) -> None:
        """Let go of the bytes. Idempotent."""
        self._file.close()


def hdf5_access(opening: Opening) -> Hdf5Access:
    """The way to the recording that ``opening`` names."""
    return CLIENT if opening.content is None else Hdf5Content(opening)
