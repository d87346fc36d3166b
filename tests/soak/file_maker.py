"""Makes files for a fuzz: valid ones of every container that the server reads, damaged inside.

maker = FileMaker(seed=7, samples=Path("recordings"))
maker.ordinary(Medium.VIDEO)   # as a camera would send it
maker.damaged(Medium.EVENTS)   # the same with bytes, lengths, order or dimensions changed
"""

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.soak.containers import Piece, pieces
from tests.soak.file_seeds import File, Medium, hostile, seeds

MAX_REPEATED_BYTES = 200_000
ODD_NUMBERS = (0, 1, 2, 7, 255, 256, 65_535, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LARGE_SIDES = (0, 1, 4097, 16_384, 32_767, 65_535, 1 << 20, (1 << 31) - 1)


class FileMaker:
    """Makes one file after another from a seed. Used from one thread only."""

    def __init__(self, seed: int, samples: Path | None = None) -> None:
        """``samples``: a directory of further recordings and videos to damage."""
        self._chance = random.Random(seed)
        made = seeds(samples)
        self._seeds = {m: [file for file in made if file.medium is m] for m in Medium}
        self._hostile = {m: [file for file in hostile() if file.medium is m] for m in Medium}

    @property
    def formats(self) -> list[str]:
        """The formats that are damaged."""
        return sorted({file.format for files in self._seeds.values() for file in files})

    def ordinary(self, medium: Medium) -> File:
        """A whole file."""
        return self._chance.choice(self._seeds[medium])

    def damaged(self, medium: Medium) -> File:
        """A valid file with one to three damages; one in a hundred is made by hand to do harm."""
        if self._hostile[medium] and self._chance.random() < 0.01:
            return self._chance.choice(self._hostile[medium])
        file = self.ordinary(medium)
        names = self._chance.choices(list(_DAMAGES), k=self._chance.choice((1, 1, 2, 3)))
        for name in names:
            file = replace(file, content=self._damage(name, file) or b"\0")
        return replace(file, damage="+".join(names))

    def _damage(self, name: str, file: File) -> bytes:
        if file.format == "npz" and self._chance.random() < 0.7:
            return self._inside_archive(name, file)
        damaged = _DAMAGES[name](self._chance, file, self._seeds[file.medium])
        if file.format == "png" and self._chance.random() < 0.8:
            return _png_with_sums(damaged)
        return damaged

    def _inside_archive(self, name: str, file: File) -> bytes:
        """Damage one member and repack the archive, so that its checksums are right."""
        try:
            with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
                members = {member: archive.read(member) for member in archive.namelist()}
        except Exception:
            return file.content  # already damaged; zipfile raises many kinds of errors
        if not members:
            return file.content
        chosen = self._chance.choice(list(members))
        inner = replace(file, format="npy", content=members[chosen])
        members[chosen] = _DAMAGES[name](self._chance, inner, [inner])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED)
        return packed.getvalue()


def _bytes(chance: random.Random, file: File, others: list[File]) -> bytes:
    content = bytearray(file.content)
    end = len(content) if chance.random() < 0.5 else min(len(content), 256)
    for _ in range(chance.choice((1, 1, 2, 4, 16, 64))):
        content[chance.randrange(end)] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    return bytes(content)


def _length(chance: random.Random, file: File, others: list[File]) -> bytes:
    found = [piece for piece in pieces(file.content) if piece.length_bytes]
    content = bytearray(file.content)
    size = len(content)
    value = chance.choice((*ODD_NUMBERS, size, size + 1, size - 1, chance.randrange(size * 2)))
    if found and chance.random() < 0.8:
        chance.choice(found).state(content, value)
    else:
        place = chance.randrange(max(1, size - 4))
        content[place : place + 4] = struct.pack(chance.choice("<>") + "I", value % (1 << 32))
    return bytes(content)


def _cut(chance: random.Random, file: File, others: list[File]) -> bytes:
    return file.content[: chance.randrange(1, len(file.content) + 1)]


def _splice(chance: random.Random, file: File, others: list[File]) -> bytes:
    other = chance.choice(others).content
    here, there = _edge(chance, file.content), _edge(chance, other)
    return file.content[:here] + other[there:]


def _repeat(chance: random.Random, file: File, others: list[File]) -> bytes:
    piece = _some_piece(chance, file.content)
    times = chance.choice((2, 3, 20, 200))
    part = file.content[piece.start : piece.stop]
    times = min(times, 1 + MAX_REPEATED_BYTES // max(1, len(part)))
    return file.content[: piece.start] + part * times + file.content[piece.stop :]


def _drop(chance: random.Random, file: File, others: list[File]) -> bytes:
    piece = _some_piece(chance, file.content)
    return file.content[: piece.start] + file.content[piece.stop :]


def _swap(chance: random.Random, file: File, others: list[File]) -> bytes:
    first, second = sorted(
        (_some_piece(chance, file.content) for _ in range(2)), key=lambda piece: piece.start
    )
    if first.stop > second.start:
        return file.content
    content = file.content
    return (
        content[: first.start]
        + content[second.start : second.stop]
        + content[first.stop : second.start]
        + content[first.start : first.stop]
        + content[second.stop :]
    )


def _dimensions(chance: random.Random, file: File, others: list[File]) -> bytes:
    """Replace the width and the height, in whichever encoding they are found."""
    content = file.content
    for side in (file.width, file.height):
        large = chance.choice(LARGE_SIDES)
        for layout in chance.sample(("<H", ">H", "<I", ">I"), 4):
            most = (1 << (8 * struct.calcsize(layout))) - 1
            written = struct.pack(layout, min(side, most))
            if written in content:
                content = content.replace(written, struct.pack(layout, min(large, most)), 2)
                break
        else:
            content = content.replace(str(side).encode(), str(large).encode(), 2)
    return content


_DAMAGES: dict[str, Callable[[random.Random, File, list[File]], bytes]] = {
    "bytes": _bytes,
    "length": _length,
    "cut": _cut,
    "splice": _splice,
    "repeat": _repeat,
    "drop": _drop,
    "swap": _swap,
    "dimensions": _dimensions,
}


def _edge(chance: random.Random, content: bytes) -> int:
    """The start of a piece, or any offset."""
    if chance.random() < 0.6:
        return _some_piece(chance, content).start
    return chance.randrange(len(content) + 1)


def _some_piece(chance: random.Random, content: bytes) -> Piece:
    if found := pieces(content):
        return chance.choice(found)
    start = chance.randrange(len(content))
    return Piece(start, min(len(content), start + chance.choice((1, 2, 4, 16, 256))))


def _png_with_sums(content: bytes) -> bytes:
    """Correct every chunk's checksum, so that a decoder reads the damaged content."""
    fixed = bytearray(content)
    for piece in pieces(content):
        if content.startswith(b"\x89PNG") and piece.stop - piece.start >= 12:
            total = zlib.crc32(content[piece.start + 4 : piece.stop - 4])
            fixed[piece.stop - 4 : piece.stop] = struct.pack(">I", total)
    return bytes(fixed)
