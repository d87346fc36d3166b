"""AEDAT4, iniVation's container: packets of events, each compressed by itself.

This module parses only what event packets need: FlatBuffers tables with one vector of 16-byte
records. No library is used, because none bounds what a packet unpacks to before unpacking it.
"""

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Self

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.recording import Columns, Opening, Recording, not_installed

MAGIC = b"#!AER-DAT4.0\r\n"
MAX_HEADER_BYTES = 1 << 20
MAX_PACKET_BYTES = 1 << 25
"""Unpacked: two million events. Cameras send packets of a few thousand."""
RECORD = np.dtype(
    {
        "names": ["t", "x", "y", "p"],
        "formats": ["<i8", "<i2", "<i2", "u1"],
        "offsets": [0, 8, 10, 12],
        "itemsize": 16,
    }
)
PIECE_BYTES = 1 << 17
"""Unpacked at a time. Most packets are smaller, and a buffer for the largest takes milliseconds."""
MAX_RATIO = 64
"""Bytes that a packet may unpack to for each of its own; cameras' packets reach ten."""
MAX_OVERHEAD_BYTES = 4096
"""Bytes of an unpacked packet that are no events; writers need a few dozen."""
MAX_IDLE_PACKETS = 10_000
"""Packets without events, or with hardly more than their own header, before a file is refused."""
MIN_PACKET_BYTES = 32
BLOCK_EVENTS = 1 << 16
# Every repeat is bounded: a long header that never closes its quotes must not be read again and
# again to its end.
STREAM = re.compile(r'<node name="(\d{1,9})" path="[^"]{0,200}/outInfo/\d{1,9}/">')
EVENT_TYPE = re.compile(r'key="typeIdentifier"[^>]{0,200}>EVTS<')
WIDTH = re.compile(r'key="sizeX"[^>]{0,200}>(\d{1,6})<')
HEIGHT = re.compile(r'key="sizeY"[^>]{0,200}>(\d{1,6})<')

Unpack = Callable[[bytes], bytes]
Records = np.ndarray[tuple[int], np.dtype[np.void]]


@dataclass(frozen=True)
class Aedat4Header:
    """The stream that carries events, its sensor, and where and how packets are stored."""

    stream: int
    sensor: SensorSize | None
    unpack: Unpack
    start: int
    stop: int


def open_aedat4(opening: Opening) -> Recording:
    """Open an AEDAT4 file; of several event streams the first is read."""
    num_bytes = opening.num_bytes
    with opening.open() as file:
        header = _read_header(file, num_bytes)
    return Aedat4Recording(opening, header)


class Aedat4Recording(Recording):
    """An AEDAT4 file, unpacked a packet at a time."""

    def __init__(self, opening: Opening, header: Aedat4Header) -> None:
        self.opening, self.format = opening, "AEDAT4"
        self.sensor = opening.resolve_sensor(header.sensor)
        self._header = header

    def columns(self) -> Iterator[Columns]:
        """Unpack the file packet by packet, joining small packets."""
        gathered: list[Records] = []
        num_gathered = 0
        for records in self._packets():
            gathered.append(records)
            num_gathered += len(records)
            if num_gathered >= BLOCK_EVENTS:
                yield _columns(gathered)
                gathered, num_gathered = [], 0
        if gathered:
            yield _columns(gathered)

    def _packets(self) -> Iterator[Records]:
        """Yield the events of each packet that has any."""
        position, stop, num_idle = self._header.start, self._header.stop, 0
        with self.opening.open() as file:
            while position + 8 <= stop:
                file.seek(position)
                stream, num_bytes = struct.unpack("<ii", file.read(8))
                position += 8 + num_bytes
                if num_bytes < 0 or position > stop:
                    raise MediaError("a packet goes past the end; it is truncated: copy it again")
                idle = num_bytes < MIN_PACKET_BYTES
                if stream == self._header.stream:
                    records = _read_packet(self._header.unpack(file.read(num_bytes)))
                    idle = not len(records)
                    if not idle:
                        yield records
                num_idle += idle
                if num_idle > MAX_IDLE_PACKETS:
                    raise MediaError("most of its packets are empty; it is damaged: copy it again")


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
        if EVENT_TYPE.search(body):
            width, height = WIDTH.search(body), HEIGHT.search(body)
            sensor = SensorSize(int(width[1]), int(height[1])) if width and height else None
            # The table of contents after the packets is not needed; -1 says there is none.
            end = stop if start <= stop <= num_bytes else num_bytes
            return Aedat4Header(int(stream), sensor, _unpacker(compression), start, end)
    raise MediaError("it has no stream of events; choose a recording of an event camera")


def _columns(packets: list[Records]) -> Columns:
    records = np.concatenate(packets)
    return records["x"], records["y"], records["t"], records["p"]


def _read_packet(data: bytes) -> Records:
    if len(data) < 4:
        raise MediaError("a packet is empty; it is damaged: copy it again")
    table = _Table.root(data[4:], b"EVTS")
    records = np.frombuffer(table.vector(0, RECORD.itemsize), dtype=RECORD)
    if len(data) > records.nbytes + MAX_OVERHEAD_BYTES:
        raise MediaError("a packet holds more than its events; it is damaged: copy it again")
    return records


@dataclass(frozen=True)
class _Table:
    """A FlatBuffers table: fields found through a table of offsets, every offset checked."""

    data: bytes
    position: int

    @classmethod
    def root(cls, data: bytes, identifier: bytes) -> Self:
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
        """The bytes of a number, or None where the writer left it at its default."""
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
        raise not_installed("reading AEDAT4", "lz4") from error
    unpacker = lz4.frame.LZ4FrameDecompressor()
    pieces = [unpacker.decompress(data, max_length=PIECE_BYTES)]
    num_bytes = len(pieces[0])
    while not unpacker.eof and not unpacker.needs_input and num_bytes <= _most(data):
        pieces.append(unpacker.decompress(b"", max_length=PIECE_BYTES))
        num_bytes += len(pieces[-1])
    if not unpacker.eof:
        raise MediaError("a packet is cut short, or unpacks to more than a packet may")
    return b"".join(pieces)


def _unpack_zstd(data: bytes) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise not_installed("reading AEDAT4", "zstandard") from error
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_PACKET_BYTES)
    pieces: list[bytes] = []
    num_bytes = 0
    try:
        with unpacker.stream_reader(data) as reader:
            while piece := reader.read(PIECE_BYTES):
                pieces.append(piece)
                num_bytes += len(piece)
                if num_bytes > _most(data):
                    raise MediaError("a packet unpacks to more than a packet may; it is damaged")
    except zstandard.ZstdError as error:
        raise MediaError(f"a packet cannot be unpacked ({error}); copy it again") from error
    return b"".join(pieces)


def _most(packed: bytes) -> int:
    return min(MAX_PACKET_BYTES, MAX_OVERHEAD_BYTES + MAX_RATIO * len(packed))
