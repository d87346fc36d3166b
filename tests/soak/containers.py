"""Finds the pieces of a container: where each begins and ends, and where its length is stored.

Boxes of MP4, chunks of RIFF and PNG, segments of JPEG, elements of Matroska, entries of TIFF. It
parses only as much as the fuzz needs to damage a file. It also takes damaged files: a piece that
cannot be parsed ends the search.
"""

import struct
from dataclasses import dataclass

MAX_PIECES = 2000
_BOXES_OF_BOXES = {
    *(b"moov", b"trak", b"mdia", b"minf", b"stbl", b"dinf", b"edts", b"udta", b"moof", b"traf"),
    b"mvex",
}
# EBML, Segment, SeekHead, Info, Tracks, TrackEntry, Video, Cluster, BlockGroup, Cues, CuePoint.
_MASTERS = {
    *(0x1A45DFA3, 0x18538067, 0x114D9B74, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0),
    *(0x1F43B675, 0xA0, 0x1C53BB6B, 0xBB),
}


@dataclass(frozen=True)
class Piece:
    """A part of a file that says its own length; or one that does not."""

    start: int
    stop: int
    length_at: int = 0
    length_bytes: int = 0
    layout: str = ">"
    """Of the length: ``>`` and ``<`` as in ``struct``, ``v`` as in Matroska."""

    def state(self, content: bytearray, length: int) -> None:
        """Write another length into the file."""
        bits = 8 * self.length_bytes
        if self.layout == "v":
            marked = (length % (1 << (7 * self.length_bytes))) | 1 << (7 * self.length_bytes)
            written = marked.to_bytes(self.length_bytes, "big")
        else:
            order = "big" if self.layout == ">" else "little"
            written = (length % (1 << bits)).to_bytes(self.length_bytes, order)
        content[self.length_at : self.length_at + self.length_bytes] = written


def pieces(content: bytes) -> list[Piece]:
    """Every piece of a file, at any depth; none if its container is not known."""
    found: list[Piece] = []
    if content[4:8] in (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide"):
        _boxes(content, 0, len(content), found)
    elif content[:4] == b"RIFF":
        _chunks(content, 12, len(content), found)
        found.append(Piece(0, len(content), 4, 4, "<"))
    elif content[:4] == b"\x89PNG":
        _png(content, found)
    elif content[:2] == b"\xff\xd8":
        _jpeg(content, found)
    elif content[:4] == b"\x1aE\xdf\xa3":
        _elements(content, 0, len(content), found)
    elif content[:4] == b"II*\0":
        _tiff(content, found)
    return found


def _boxes(content: bytes, start: int, stop: int, found: list[Piece]) -> None:
    while start + 8 <= stop and len(found) < MAX_PIECES:
        size, kind = struct.unpack_from(">I4s", content, start)
        end = start + size
        if size < 8 or end > stop:
            return
        found.append(Piece(start, end, start, 4))
        if kind in _BOXES_OF_BOXES:
            _boxes(content, start + 8, end, found)
        else:
            # Most others begin with a version, flags and a count.
            found.append(Piece(start, end, min(start + 12, end - 4), 4))
        start = end


def _chunks(content: bytes, start: int, stop: int, found: list[Piece]) -> None:
    while start + 8 <= stop and len(found) < MAX_PIECES:
        kind, size = struct.unpack_from("<4sI", content, start)
        end = start + 8 + size + size % 2
        if end > stop:
            return
        found.append(Piece(start, end, start + 4, 4, "<"))
        if kind == b"LIST":
            _chunks(content, start + 12, end, found)
        start = end


def _png(content: bytes, found: list[Piece]) -> None:
    start = 8
    while start + 12 <= len(content) and len(found) < MAX_PIECES:
        end = start + 12 + struct.unpack_from(">I", content, start)[0]
        if end > len(content):
            return
        found.append(Piece(start, end, start, 4))
        start = end


def _jpeg(content: bytes, found: list[Piece]) -> None:
    start = 2
    while start + 4 <= len(content) and content[start] == 0xFF and len(found) < MAX_PIECES:
        end = start + 2 + struct.unpack_from(">H", content, start + 2)[0]
        if end > len(content):
            return
        found.append(Piece(start, end, start + 2, 2))
        start = end


def _elements(content: bytes, start: int, stop: int, found: list[Piece]) -> None:
    while start + 2 <= stop and len(found) < MAX_PIECES:
        id_bytes = 9 - content[start].bit_length()
        length_at = start + id_bytes
        if id_bytes > 4 or length_at >= stop or not content[length_at]:
            return
        identity = int.from_bytes(content[start:length_at], "big")
        length_bytes = 9 - content[length_at].bit_length()
        inner = length_at + length_bytes
        size = int.from_bytes(content[length_at:inner], "big") & ((1 << (7 * length_bytes)) - 1)
        unknown = size == (1 << (7 * length_bytes)) - 1
        end = stop if unknown else inner + size
        if inner > stop or end > stop:
            return
        found.append(Piece(start, end, length_at, length_bytes, "v"))
        if identity in _MASTERS:
            _elements(content, inner, end, found)
        start = end


def _tiff(content: bytes, found: list[Piece]) -> None:
    (table,) = struct.unpack_from("<I", content.ljust(8, b"\0"), 4)
    if table + 2 > len(content):
        return
    (count,) = struct.unpack_from("<H", content, table)
    for number in range(min(count, MAX_PIECES)):
        start = table + 2 + 12 * number
        if start + 12 > len(content):
            return
        found.append(Piece(start, start + 12, start + 4, 4, "<"))  # how many values
        found.append(Piece(start, start + 12, start + 8, 4, "<"))  # the value, or where it is
