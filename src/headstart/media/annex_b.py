"""Encoded pictures as video encoders give them: H.264 and H.265 with start codes, Annex B of both.

Nothing is decoded here. A picture is looked into only as far as its first slice, to see whether
decoding can begin with it.
"""

from dataclasses import dataclass
from enum import StrEnum

from headstart.errors import MediaError

MAX_UNITS = 64
"""Looked at in one picture: parameter sets and remarks before its first slice."""
_START = b"\0\0\1"


class Codec(StrEnum):
    H264 = "h264"
    H265 = "h265"


@dataclass(frozen=True)
class _Units:
    """How a codec numbers the kinds of its units."""

    shift: int
    mask: int
    slices: range
    keys: range
    """Slices of key pictures, which build on no picture before."""
    parameter_sets: frozenset[int]

    def kind(self, first_byte: int) -> int:
        return first_byte >> self.shift & self.mask


_UNITS = {
    Codec.H264: _Units(0, 0x1F, range(1, 6), range(5, 6), frozenset({7, 8})),
    Codec.H265: _Units(1, 0x3F, range(32), range(16, 22), frozenset({32, 33, 34})),
}


def can_begin(codec: Codec, picture: bytes) -> bool:
    """Whether it is a key picture with its parameter sets, so that decoding can begin with it.

    Raises `MediaError` if there is no start code where a picture begins.
    """
    if not picture.startswith((_START, b"\0" + _START)):
        raise MediaError(
            "an encoded picture begins with a start code, 00 00 01 or 00 00 00 01; set the encoder"
            ' to Annex B (WebCodecs: format "annexb")'
        )
    units, seen, position = _UNITS[codec], set[int](), 0
    for _ in range(MAX_UNITS):
        start = picture.find(_START, position)
        position = start + len(_START)
        if start < 0 or position >= len(picture):
            break
        kind = units.kind(picture[position])
        if kind in units.slices:
            return kind in units.keys and units.parameter_sets <= seen
        seen.add(kind)
    return False
