"""A camera's video: its description, RFC 8866, and its pictures, still compressed.

Pictures are put together from RTP packets: H.264 (RFC 6184) and H.265 (RFC 7798).
"""

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin

from headstart.errors import SourceError
from headstart.media.annex_b import Codec

MAX_PICTURE_BYTES = 16 << 20
MAX_UNITS = 4096
"""Of one picture. The standards allow 600 slices, and a few units before them."""
_START = b"\0\0\0\1"
"""Before each unit of a picture: Annex B of both standards."""
_STAP_A, _FU_A = 24, 28
_AGGREGATED, _FRAGMENTED, _MAX_UNIT = 48, 49, 47


@dataclass(frozen=True)
class VideoTrack:
    """The first video of a session that can be read."""

    codec: Codec
    payload_type: int
    clock_hz: int
    url: str
    parameter_sets: tuple[bytes, ...]
    """What the decoder needs before the first picture, where the description states it."""

    @classmethod
    def parse(cls, description: str, base_url: str) -> "VideoTrack":
        """Choose the track; raises `SourceError` where there is none that can be read."""
        session, *media = re.split(r"(?m)^(?=m=)", description.replace("\r\n", "\n"))
        # A control of the whole session may replace the base.
        base_url = _joined(base_url, _attribute(session, "control") or "*")
        offered = []
        for section in media:
            words = section.splitlines()[0].split()
            if words[0] != "m=video":
                continue
            for payload_type, name, clock in re.findall(
                r"(?m)^a=rtpmap:(\d{1,3}) ([\w.-]+)/(\d{1,9})", section
            ):
                offered.append(name)
                if name.upper() not in Codec.__members__ or not int(clock):
                    continue
                return cls(
                    Codec[name.upper()],
                    int(payload_type),
                    int(clock),
                    _joined(base_url, _attribute(section, "control") or "*"),
                    _parameter_sets(section),
                )
        sent = f"sends {', '.join(offered)}" if offered else "describes no video"
        raise SourceError(f"the camera {sent}; set it to H.264 or H.265")


def _attribute(section: str, name: str) -> str | None:
    found = re.search(rf"(?m)^a={name}:(.+)$", section)
    return found.group(1).strip() if found else None


def _joined(base_url: str, control: str) -> str:
    if control == "*":
        return base_url
    if re.match(r"rtsps?://", control, re.IGNORECASE):
        return control
    # As cameras mean it, not as RFC 1808 has it: behind the base, not in place of its last part.
    if control.startswith("/"):
        return re.sub(r"^(\w+://[^/]+).*", rf"\1{control}", base_url)
    return urljoin(base_url if base_url.endswith("/") else base_url + "/", control)


def _parameter_sets(section: str) -> tuple[bytes, ...]:
    stated = re.findall(r"sprop-(?:parameter-sets|vps|sps|pps)=([\w+/=,]+)", section)
    sets = []
    for text in ",".join(stated).split(","):
        try:
            sets.append(base64.b64decode(text, validate=True))
        except binascii.Error:
            continue  # the stream repeats them
    return tuple(each for each in sets if each)


class Pictures:
    """Takes packets in order, as TCP delivers them."""

    def __init__(self, track: VideoTrack) -> None:
        self._track = track
        self._before = b"".join(_START + each for each in track.parameter_sets)
        """What the first picture needs before it."""
        self._picture, self._num_units = bytearray(), 0
        self._fragments = bytearray()
        """Of a unit whose end has not come; empty while there is none."""
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
        content = bytes(self._picture)
        self._picture.clear()
        self._fragments.clear()
        self._num_units = 0
        if content:
            before, self._before = self._before, b""
            yield self._ticks * 1_000_000 // self._track.clock_hz, before + content

    def _unpack(self, payload: bytes) -> None:
        if self._track.codec is Codec.H264:
            kind = payload[0] & 0x1F
            if kind == _STAP_A:
                self._aggregate(payload, 1)
            elif kind == _FU_A:
                header = bytes([payload[0] & 0xE0 | payload[1] & 0x1F])
                self._fragment(payload[1], header, payload[2:])
            elif 0 < kind < _STAP_A:
                self._add(payload)
        else:
            kind = payload[0] >> 1 & 0x3F
            if kind == _AGGREGATED:
                self._aggregate(payload, 2)
            elif kind == _FRAGMENTED:
                header = bytes([payload[0] & 0x81 | (payload[2] & 0x3F) << 1, payload[1]])
                self._fragment(payload[2], header, payload[3:])
            elif kind <= _MAX_UNIT:
                self._add(payload)

    def _aggregate(self, payload: bytes, start: int) -> None:
        """Units behind their lengths. One without a byte is none: what follows is padding."""
        while start + 2 < len(payload):
            length = int.from_bytes(payload[start : start + 2], "big")
            if not length:
                return
            self._add(payload[start + 2 : start + 2 + length])
            start += 2 + length

    def _fragment(self, flags: int, header: bytes, content: bytes) -> None:
        """A part of a unit; the two highest flags say which is the first and which the last."""
        if flags & 0x80:
            self._fragments[:] = header
        if not self._fragments:
            return  # its beginning was sent before we were there
        self._fragments += content
        self._check_size()
        if flags & 0x40:
            self._add(self._fragments)
            self._fragments.clear()

    def _add(self, unit: bytes | bytearray) -> None:
        self._picture += _START
        self._picture += unit
        self._num_units += 1
        self._check_size()

    def _check_size(self) -> None:
        num_bytes = len(self._picture) + len(self._fragments)
        if num_bytes > MAX_PICTURE_BYTES or self._num_units > MAX_UNITS:
            raise SourceError("the camera sends a picture without end; restart it")


def _payload(packet: bytes) -> bytes:
    """What is behind the header, its extension, and in front of the padding."""
    start = 12 + 4 * (packet[0] & 0x0F)
    if packet[0] & 0x10 and len(packet) >= start + 4:
        start += 4 + 4 * int.from_bytes(packet[start + 2 : start + 4], "big")
    stop = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
    return packet[start:stop]
