"""Puts compressed pictures together from RTP packets: H.264 (RFC 6184) and H.265 (RFC 7798)."""

import struct
from collections.abc import Iterator, Sequence

from headstart.errors import SourceError
from headstart.live.sources.rtsp.description import VideoTrack
from headstart.media.annex_b import Codec

MAX_PICTURE_BYTES = 16 << 20
_START = b"\0\0\0\1"
"""Before each unit of a picture: Annex B of both standards."""
_STAP_A, _FU_A = 24, 28
_AGGREGATED, _FRAGMENTED, _MAX_UNIT = 48, 49, 47


class Pictures:
    """Takes packets in order, as TCP delivers them."""

    def __init__(self, track: VideoTrack) -> None:
        self._track = track
        self._units: list[bytes] = [_START + each for each in track.parameter_sets]
        self._num_bytes = 0
        self._fragments: list[bytes] = []
        self._num_fragment_bytes = 0
        self._timestamp: int | None = None
        self._ticks = 0

    def take(self, packet: bytes) -> Iterator[tuple[int, bytes]]:
        """Take an RTP packet; yields each picture that is complete, and its time in us."""
        if len(packet) < 12 or packet[0] >> 6 != 2:
            return
        marker, payload_type = packet[1] >> 7, packet[1] & 0x7F
        if payload_type != self._track.payload_type:
            return
        (timestamp,) = struct.unpack_from(">I", packet, 4)
        if self._timestamp is not None and timestamp != self._timestamp:
            yield from self._complete()
        self._advance(timestamp)
        payload = _payload(packet)
        if len(payload) > 2:
            self._unpack(payload)
        if marker:
            yield from self._complete()

    def _advance(self, timestamp: int) -> None:
        """Timestamps have 32 bits and wrap every 13 hours."""
        if self._timestamp is not None:
            step = (timestamp - self._timestamp) & 0xFFFFFFFF
            self._ticks += step if step < 1 << 31 else step - (1 << 32)
        self._timestamp = timestamp

    def _complete(self) -> Iterator[tuple[int, bytes]]:
        if self._num_bytes:
            yield self._ticks * 1_000_000 // self._track.clock_hz, b"".join(self._units)
            self._units, self._num_bytes = [], 0
        self._fragments, self._num_fragment_bytes = [], 0

    def _unpack(self, payload: bytes) -> None:
        if self._track.codec is Codec.H264:
            kind = payload[0] & 0x1F
            if kind == _STAP_A:
                self._aggregate(payload[1:])
            elif kind == _FU_A:
                header = bytes([payload[0] & 0xE0 | payload[1] & 0x1F])
                self._fragment(payload[1], header, payload[2:])
            elif 0 < kind < _STAP_A:
                self._add([payload])
        else:
            kind = payload[0] >> 1 & 0x3F
            if kind == _AGGREGATED:
                self._aggregate(payload[2:])
            elif kind == _FRAGMENTED:
                header = bytes([payload[0] & 0x81 | (payload[2] & 0x3F) << 1, payload[1]])
                self._fragment(payload[2], header, payload[3:])
            elif kind <= _MAX_UNIT:
                self._add([payload])

    def _aggregate(self, units: bytes) -> None:
        """Units behind their lengths."""
        while len(units) > 2:
            length = int.from_bytes(units[:2], "big")
            self._add([units[2 : 2 + length]])
            units = units[2 + length :]

    def _fragment(self, flags: int, header: bytes, content: bytes) -> None:
        """A part of a unit; the two highest flags say which is the first and which the last."""
        if flags & 0x80:
            self._fragments, self._num_fragment_bytes = [header], 0
        if not self._fragments:
            return  # its beginning was sent before we were there
        self._fragments.append(content)
        self._num_fragment_bytes += len(content)
        self._check_size()
        if flags & 0x40:
            self._add(self._fragments)
            self._fragments, self._num_fragment_bytes = [], 0

    def _add(self, parts: Sequence[bytes]) -> None:
        self._units += [_START, *parts]
        self._num_bytes += sum(map(len, parts))
        self._check_size()

    def _check_size(self) -> None:
        if self._num_bytes + self._num_fragment_bytes > MAX_PICTURE_BYTES:
            raise SourceError("the camera sends a picture without end; restart it")


def _payload(packet: bytes) -> bytes:
    """What is behind the header, its extension, and in front of the padding."""
    start = 12 + 4 * (packet[0] & 0x0F)
    if packet[0] & 0x10 and len(packet) >= start + 4:
        start += 4 + 4 * int.from_bytes(packet[start + 2 : start + 4], "big")
    stop = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
    return packet[start:stop]
