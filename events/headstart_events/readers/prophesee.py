"""Prophesee's RAW, encodings EVT2 and EVT3, and DAT, decoded with numpy a block at a time.

RAW's EVT2 has words of 32 bits and EVT3 of 16; the top 4 bits of a word are its type. Times come in
two parts, high bits now and then and low bits more often. Each part holds until the next word that
sets it, and the high part wraps around. Trigger and monitoring words are skipped. DAT has records
of 8 bytes, a 32-bit time and x, y, polarity in 14, 14 and 4 bits. Both begin with a text header,
lines of ``% key value``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import MAX_TIME_US, SensorSize
from headstart_events.recording import Columns, Opening, Recording

MAX_HEADER_BYTES = 65_536


@dataclass(frozen=True)
class PropheseeHeader:
    """The values of a header by key in lower case, and the header's length."""

    values: dict[str, str]
    num_bytes: int

    @classmethod
    def read(cls, file: BinaryIO) -> Self:
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


BLOCK_BYTES = 1 << 18


def open_raw(opening: Opening) -> Recording:
    """Open a RAW file; its header must say EVT2 or EVT3."""
    with opening.open() as file:
        header = PropheseeHeader.read(file)
    stated = header.values.get("format", header.values.get("evt", ""))
    match = re.match(r"(?:evt)?([23])(?:\.0)?(?:;|$)", stated.lower())
    if not match:
        raise MediaError(
            f"its header says its encoding is {stated or 'unknown'!r}, and EVT2 and EVT3 are read; "
            "convert it with the camera's own software"
        )
    return RawRecording(opening, header, Evt2Decoder if match[1] == "2" else Evt3Decoder)


class RawRecording(Recording):
    """A RAW file. It has no index, so every window is read from the start of the file."""

    def __init__(
        self,
        opening: Opening,
        header: PropheseeHeader,
        decoder: "type[Evt2Decoder] | type[Evt3Decoder]",
    ) -> None:
        self.opening, self.format = opening, f"Prophesee RAW, {decoder.name}"
        self.sensor = opening.resolve_sensor(header.sensor())
        self._header, self._decoder = header, decoder

    def columns(self) -> Iterator[Columns]:
        decoder = self._decoder()
        t0_us = self._header.t0_us()
        with self.opening.open() as file:
            file.seek(self._header.num_bytes)
            while data := file.read(BLOCK_BYTES):
                whole = len(data) - len(data) % decoder.word.itemsize
                x, y, t, p = decoder.decode(np.frombuffer(data[:whole], dtype=decoder.word))
                yield x, y, t + t0_us, p


def hold(values: NDArray[Any], given: NDArray[np.bool_], before: int) -> NDArray[np.int64]:
    """Fill each place with the last given value at or before it, or with ``before``."""
    places = np.flatnonzero(given)
    lengths = np.diff(places, prepend=0, append=len(values))
    return np.repeat(np.concatenate([[before], values[places].astype(np.int64)]), lengths)


def unwrap(highs: NDArray[np.int64], previous: int, bits: int) -> NDArray[np.int64]:
    """Continue counters of ``bits`` bits past their wrap; ``previous`` came before the first.

    A fall of more than half the range is a wrap. A smaller fall is a step back and stays one.
    """
    span = 1 << bits
    steps = np.diff(highs, prepend=previous % span if previous >= 0 else highs[:1])
    wraps = np.cumsum(steps < -(span // 2))
    return highs + (wraps + max(previous, 0) // span) * span


class Evt2Decoder:
    """32-bit words: type 4, time 6, x 11, y 11; or type 4, time high 28."""

    name = "EVT2"
    word = np.dtype("<u4")

    def __init__(self) -> None:
        self._high = -1  # until the first high part; events before it have no time

    def decode(self, words: NDArray[np.uint32]) -> Columns:
        """Decode the events among the next ``words`` of the stream."""
        kind = words >> 28
        is_high = kind == 0x8
        highs = words.astype(np.int64) & 0x0FFF_FFFF
        if np.any(is_high):
            highs[is_high] = unwrap(highs[is_high], self._high, 28)
        held = hold(highs, is_high, self._high)
        if len(held):
            self._high = int(held[-1])
        is_event = (kind <= 1) & (held >= 0)
        chosen = words[is_event]
        t = (held[is_event] << 6) | ((chosen >> 22) & 0x3F)
        return (chosen >> 11) & 0x7FF, chosen & 0x7FF, t, chosen >> 28


class Evt3Decoder:
    """16-bit words that set y, time or base x, and words of one or up to twelve events."""

    name = "EVT3"
    word = np.dtype("<u2")

    def __init__(self) -> None:
        self._high = -1  # until the first high part; events before it have no time
        self._low = 0
        self._y = -1
        self._base = 0  # x of the next vector word, and its polarity in bit 11
        self._polarity = 0

    def decode(self, words: NDArray[np.uint16]) -> Columns:
        """Decode the events among the next ``words`` of the stream."""
        kind = words >> 12
        value = (words & 0x0FFF).astype(np.int64)
        t = self._times(kind, value)
        y = hold(value & 0x7FF, kind == 0x0, self._y)
        base, polarity = self._bases(kind, value)
        if len(words):
            self._y = int(y[-1])
        # Every word of events as its first x and a mask of which x follow.
        is_single, is_12, is_8 = kind == 0x2, kind == 0x4, kind == 0x5
        words_of_events = np.flatnonzero((is_single | is_12 | is_8) & (t >= 0) & (y >= 0))
        single, chosen = is_single[words_of_events], value[words_of_events]
        t, y = t[words_of_events], y[words_of_events]
        first_x = np.where(single, chosen & 0x7FF, base[words_of_events])
        on = np.where(single, chosen >> 11, polarity[words_of_events])
        if np.all(single):
            return first_x, y, t, on
        mask = np.where(single, 1, np.where(is_8[words_of_events], chosen & 0xFF, chosen))
        packed = mask.astype("<u2").view(np.uint8).reshape(-1, 2)
        rows, bits = np.nonzero(np.unpackbits(packed, axis=1, bitorder="little").view(np.bool_))
        return first_x[rows] + bits, y[rows], t[rows], on[rows]

    def _times(self, kind: NDArray[Any], value: NDArray[np.int64]) -> NDArray[np.int64]:
        is_high = kind == 0x8
        highs = value.copy()
        if np.any(is_high):
            highs[is_high] = unwrap(value[is_high], self._high, 12)
        high = hold(highs, is_high, self._high)
        # A new high part starts at low 0: the low part held until then belongs to the old one.
        changed = np.diff(high, prepend=self._high) != 0
        low = hold(np.where(changed, 0, value), (kind == 0x6) | changed, self._low)
        if len(high):
            self._high, self._low = int(high[-1]), int(low[-1])
        return np.where(high >= 0, (high << 12) | low, -1)

    def _bases(
        self, kind: NDArray[Any], value: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        is_base = kind == 0x3
        if not np.any((kind >= 0x3) & (kind <= 0x5)):  # no vectors here: nothing to follow
            return np.full(len(kind), self._base), np.full(len(kind), self._polarity)
        width = np.where(kind == 0x4, 12, np.where(kind == 0x5, 8, 0))
        passed = np.cumsum(width) - width
        # x of a vector word: the last base, and the widths of the vector words since.
        base = hold((value & 0x7FF) - passed, is_base, self._base) + passed
        polarity = hold(value >> 11, is_base, self._polarity)
        if len(value):
            self._base = int(base[-1] + width[-1])
            self._polarity = int(polarity[-1])
        return base, polarity


RECORD = np.dtype("<u4")
DAT_BLOCK_BYTES = 1 << 20
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
        previous = -1
        with self.opening.open() as file:
            file.seek(self._start)
            while data := file.read(DAT_BLOCK_BYTES):
                whole = len(data) - len(data) % 8
                records = np.frombuffer(data[:whole], dtype=RECORD).reshape(-1, 2)
                if not len(records):
                    return
                t = unwrap(records[:, 0].astype(np.int64), previous, 32)
                previous = int(t[-1])
                packed = records[:, 1]
                x, y, p = packed & 0x3FFF, (packed >> 14) & 0x3FFF, (packed >> 28) != 0
                yield x, y, t + self._t0_us, p
