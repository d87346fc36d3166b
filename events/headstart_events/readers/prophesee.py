"""The text header that Prophesee's RAW and DAT files share: lines of ``% key value``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO

from headstart.errors import MediaError
from headstart.media.events import MAX_TIME_US, SensorSize

MAX_HEADER_BYTES = 65_536


@dataclass(frozen=True)
class PropheseeHeader:
    """The values of a header by key in lower case, and the header's length."""

    values: dict[str, str]
    num_bytes: int

    @classmethod
    def read(cls, file: BinaryIO) -> PropheseeHeader:
        """Read the header at the start of ``file``."""
        head = file.read(MAX_HEADER_BYTES)
        values: dict[str, str] = {}
        position = 0
        while head[position : position + 1] == b"%":
            end = head.find(b"\n", position)
            if end < 0:
                raise MediaError("its header has no end; it is truncated: copy it again")
            line = head[position:end].decode("latin-1").lstrip("%").strip()
            position = end + 1
            if line.lower() == "end":
                break
            key, _, value = line.partition(" ")
            values[key.lower()] = value.strip()
        return cls(values, position)

    def sensor(self) -> SensorSize | None:
        """The sensor's size, stated in any of the ways in use, or None."""
        sides = (self.values.get("width", ""), self.values.get("height", ""))
        if all(side.isdecimal() and len(side) <= 6 for side in sides):
            return SensorSize(int(sides[0]), int(sides[1]))
        if geometry := re.match(r"(\d{1,6})x(\d{1,6})$", self.values.get("geometry", "")):
            return SensorSize(int(geometry[1]), int(geometry[2]))
        options = self.values.get("format", "")
        width = re.search(r"width=(\d{1,6})\b", options)
        height = re.search(r"height=(\d{1,6})\b", options)
        return SensorSize(int(width[1]), int(height[1])) if width and height else None

    def t0_us(self) -> int:
        """The offset of every time: not 0 where the writer counted from the first event."""
        stated = self.values.get("t0", "0")
        if not re.fullmatch(r"-?\d{1,19}", stated) or abs(int(stated)) >= MAX_TIME_US // 2:
            raise MediaError(f"its header states t0 as {stated!r}, which is no time: copy it again")
        return int(stated)
