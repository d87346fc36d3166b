"""Wraps compressed pictures as a Matroska stream, RFC 9559, which keeps them and their times."""

import struct

from headstart.media.annex_b import Codec

_CODEC_IDS = {Codec.H264: b"V_MPEG4/ISO/AVC", Codec.H265: b"V_MPEGH/ISO/HEVC"}
_WITHOUT_END = b"\x01" + b"\xff" * 7
_TRACK = b"\x81"
"""The number of the only track, written as a length is."""


def head(codec: Codec) -> bytes:
    """What the stream begins with. Its clock counts microseconds; the decoder finds the size."""
    ebml = _element(0x1A45DFA3, _element(0x4282, b"matroska"))
    info = _element(0x1549A966, _element(0x2AD7B1, _number(1000)))
    video = _element(0xE0, _element(0xB0, _number(16)) + _element(0xBA, _number(16)))
    track = (
        _element(0xD7, _number(1))
        + _element(0x73C5, _number(1))
        + _element(0x83, _number(1))
        + _element(0x86, _CODEC_IDS[codec])
        + video
    )
    tracks = _element(0x1654AE6B, _element(0xAE, track))
    return ebml + b"\x18\x53\x80\x67" + _WITHOUT_END + info + tracks


def picture(time_us: int, content: bytes) -> bytes:
    """One picture, in a cluster of its own."""
    block = _element(0xA3, _TRACK + b"\0\0\0" + content)
    return _element(0x1F43B675, _element(0xE7, _number(max(0, time_us))) + block)


def _element(number: int, content: bytes) -> bytes:
    name = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return name + struct.pack(">Q", 1 << 56 | len(content)) + content


def _number(value: int) -> bytes:
    return struct.pack(">Q", value)
