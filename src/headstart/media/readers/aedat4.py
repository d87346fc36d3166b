"""AEDAT4, iniVation's container: packets of events, each compressed by itself.

Only what event packets need is parsed here (FlatBuffers tables with one vector of 16-byte
records), because the size of what a packet unpacks to must be bounded before it is unpacked.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart.media.recording import Columns, Opening, Recording

MAGIC = b"#!AER-DAT4.0\r\n"
MAX_HEADER_BYTES = 1 << 20
MAX_PACKET_BYTES = 1 << 26
"""Unpacked: four million events. Cameras send packets of a few thousand."""
RECORD = np.dtype(
    {
        "names": ["t", "x", "y", "p"],
        "formats": ["<i8", "<i2", "<i2", "u1"],
        "offsets": [0, 8, 10, 12],
        "itemsize": 16,
    }
)
STREAM = re.compile(r'<node name="(\d{1,9})" path="[^"]*/outInfo/\d{1,9}/">')

Unpack = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Aedat4Header:
    """What the header says: the stream that carries events, its sensor, how packets are packed."""

    stream: int
    sensor: SensorSize | None
    unpack: Unpack
    start: int
    stop: int


def open_aedat4(opening: Opening) -> Recording:
    """An AEDAT4 file; of several event streams the first is read."""
    num_bytes = opening.path.stat().st_size
    with opening.path.open("rb") as file:
        header = _read_header(file, num_bytes)
    return Aedat4Recording(opening, header)


class Aedat4Recording(Recording):
    """An AEDAT4 file, unpacked a packet at a time."""

    def __init__(self, opening: Opening, header: Aedat4Header) -> None:
        self.opening = opening
        self.sensor = opening.resolve_sensor(header.sensor)
        self._header = header

    def columns(self) -> Iterator[Columns]:
        """Unpacked from the file as they are taken."""
        with self.opening.path.open("rb") as file:
            file.seek(self._header.start)
            while file.tell() + 8 <= self._header.stop:
                stream, num_bytes = struct.unpack("<ii", file.read(8))
                if not 0 <= num_bytes <= self._header.stop - file.tell():
                    raise MediaError("a packet goes past the end; it is truncated: copy it again")
                if stream != self._header.stream:
                    file.seek(num_bytes, 1)
                    continue
                records = _read_packet(self._header.unpack(file.read(num_bytes)))
                yield records["x"], records["y"], records["t"], records["p"]


def _read_header(file: BinaryIO, num_bytes: int) -> Aedat4Header:
    head = file.read(len(MAGIC) + 4)
    if not head.startswith(MAGIC) or len(head) < len(MAGIC) + 4:
        raise MediaError("it is not AEDAT of version 4.0; convert it with the camera's software")
    (size,) = struct.unpack("<I", head[-4:])
    start = len(head) + size
    if size > min(MAX_HEADER_BYTES, num_bytes - len(head)):
        raise MediaError(f"it declares a header of {size} bytes; it is damaged: copy it again")
    table = _Table.root(file.read(size), b"IOHE")
    (compression,) = struct.unpack("<i", table.scalar(0, 4) or bytes(4))
    (stop,) = struct.unpack("<q", table.scalar(1, 8) or struct.pack("<q", -1))
    text = table.vector(2, 1).decode("utf-8", errors="replace")
    _, *parts = STREAM.split(text)
    for stream, body in zip(parts[::2], parts[1::2], strict=True):
        if re.search(r'key="typeIdentifier"[^>]*>EVTS<', body):
            width = re.search(r'key="sizeX"[^>]*>(\d{1,6})<', body)
            height = re.search(r'key="sizeY"[^>]*>(\d{1,6})<', body)
            sensor = SensorSize(int(width[1]), int(height[1])) if width and height else None
            # The table of contents after the packets is not needed; -1 says there is none.
            end = stop if start <= stop <= num_bytes else num_bytes
            return Aedat4Header(int(stream), sensor, _unpacker(compression), start, end)
    raise MediaError("it has no stream of events; choose a recording of an event camera")


def _read_packet(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    if len(data) < 4:
        raise MediaError("a packet is empty; it is damaged: copy it again")
    table = _Table.root(data[4:], b"EVTS")
    return np.frombuffer(table.vector(0, RECORD.itemsize), dtype=RECORD)


@dataclass(frozen=True)
class _Table:
    """A FlatBuffers table: fields found through a table of offsets, every offset checked."""

    data: bytes
    position: int

    @classmethod
    def root(cls, data: bytes, identifier: bytes) -> _Table:
        if data[4:8] != identifier:
            raise MediaError(f"it has no {identifier.decode()} where one belongs; copy it again")
        return cls(data, struct.unpack_from("<I", data)[0])

    def _field(self, index: int) -> int | None:
        offsets = self.position - struct.unpack_from("<i", self.data, self.position)[0]
        if offsets < 0:
            raise MediaError("an offset points before the file; it is damaged: copy it again")
        (size,) = struct.unpack_from("<H", self.data, offsets)
        if 4 + 2 * index + 2 > size:
            return None
        (offset,) = struct.unpack_from("<H", self.data, offsets + 4 + 2 * index)
        return self.position + offset if offset else None

    def scalar(self, index: int, num_bytes: int) -> bytes | None:
        """The bytes of a number, or none where the writer left it at its default."""
        place = self._field(index)
        return None if place is None else self.data[place : place + num_bytes]

    def vector(self, index: int, item_bytes: int) -> bytes:
        """The bytes of a vector or a string."""
        place = self._field(index)
        if place is None:
            return b""
        start = place + struct.unpack_from("<I", self.data, place)[0]
        (count,) = struct.unpack_from("<I", self.data, start)
        stop = start + 4 + count * item_bytes
        if stop > len(self.data):
            raise MediaError("a list goes past its packet; it is damaged: copy it again")
        return self.data[start + 4 : stop]


def _unpacker(compression: int) -> Unpack:
    if compression == 0:
        return bytes
    if compression in (1, 2):
        return _unpack_lz4
    if compression in (3, 4):
        return _unpack_zstd
    raise MediaError(f"it is compressed in an unknown way ({compression}); it may be damaged")


def _unpack_lz4(data: bytes) -> bytes:
    try:
        import lz4.frame
    except ImportError as error:
        raise _missing("lz4") from error
    unpacker = lz4.frame.LZ4FrameDecompressor()
    unpacked: bytes = unpacker.decompress(data, max_length=MAX_PACKET_BYTES)
    if not unpacker.eof:
        raise MediaError("a packet is cut short, or unpacks to more than a packet may")
    return unpacked


def _unpack_zstd(data: bytes) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise _missing("zstandard") from error
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_PACKET_BYTES)
    try:
        unpacked = unpacker.stream_reader(data).read(MAX_PACKET_BYTES + 1)
    except zstandard.ZstdError as error:
        raise MediaError(f"a packet cannot be unpacked ({error}); copy it again") from error
    if len(unpacked) > MAX_PACKET_BYTES:
        raise MediaError("a packet unpacks to more than a packet may; it is damaged")
    return bytes(unpacked)


def _missing(package: str) -> MediaError:
    return MediaError(
        f"reading AEDAT4 needs {package}, which is not installed: pip install 'headstart[events]'"
    )
