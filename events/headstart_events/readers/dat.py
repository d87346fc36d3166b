"""Prophesee DAT: records of 8 bytes, a 32-bit time and x, y, polarity in 14, 14 and 4 bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headstart.errors import MediaError
from headstart_events.readers.prophesee import PropheseeHeader
from headstart_events.readers.raw import unwrap
from headstart_events.recording import Columns, Opening, Recording

RECORD = np.dtype("<u4")
BLOCK_BYTES = 1 << 20
CHANGE_DETECTION = (0x00, 0x0C)
"""The type bytes of plain events: the old name (2d) and the current one (cd)."""


def open_dat(opening: Opening) -> Recording:
    """Open a DAT file of change-detection events, version 2."""
    with opening.open() as file:
        header = PropheseeHeader.read(file)
        file.seek(header.num_bytes)
        kind = file.read(2)
    version = header.values.get("version", "2")
    if not header.num_bytes or version != "2":
        raise MediaError(
            f"it is DAT of version {version if header.num_bytes else 'unknown'}, and version 2 "
            "is read; convert it with the camera's own software"
        )
    if len(kind) < 2 or kind[0] not in CHANGE_DETECTION or kind[1] != 8:
        raise MediaError(f"its records are of the kind {kind.hex() or 'none'}, not plain events")
    return DatRecording(opening, header)


class DatRecording(Recording):
    """A DAT file, decoded a block at a time."""

    def __init__(self, opening: Opening, header: PropheseeHeader) -> None:
        self.opening, self.format = opening, "Prophesee DAT"
        self.sensor = opening.resolve_sensor(header.sensor())
        self._t0_us, self._start = header.t0_us(), header.num_bytes + 2
        self.num_events = (opening.num_bytes - self._start) // 8

    def columns(self) -> Iterator[Columns]:
        """Decode the file a block at a time."""
        previous = -1
        with self.opening.open() as file:
            file.seek(self._start)
            while data := file.read(BLOCK_BYTES):
                whole = len(data) - len(data) % 8
                records = np.frombuffer(data[:whole], dtype=RECORD).reshape(-1, 2)
                if not len(records):
                    return
                t = unwrap(records[:, 0].astype(np.int64), previous, 32)
                previous = int(t[-1])
                packed = records[:, 1]
                x, y, p = packed & 0x3FFF, (packed >> 14) & 0x3FFF, (packed >> 28) != 0
                yield x, y, t + self._t0_us, p
