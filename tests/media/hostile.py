"""Files made to hurt a reader: small valid ones to corrupt, and ones written with intent."""

import random
import struct
from pathlib import Path

import hdf5plugin
import numpy as np

from headstart.media.video import Video
from headstart_events.writers.writing import write_recording
from tests.media.hostile_containers import (
    SENSOR,
    aedat4,
    hostile_aedat4,
    hostile_hdf5,
    pack_zstd,
    write_h5,
)
from tests.media.hostile_numpy import hostile_archives, hostile_arrays, hostile_pickles
from tests.media.synthetic import random_events, save_like_eventgpt

EXTREMES = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63,
    2**64 - 1,
]


def valid_files(folder: Path) -> list[tuple[str, bytes]]:
    """(suffix, content) of a small file of every kind that is read."""
    events = random_events(400, sensor=SENSOR, start_us=51_836_949_776)
    files: list[tuple[str, bytes]] = []
    for suffix in (".npz", ".csv", ".h5", ".raw", ".evt2.raw", ".dat", ".aedat4"):
        write_recording(folder / f"valid{suffix}", [events], SENSOR)
        files.append((suffix, (folder / f"valid{suffix}").read_bytes()))
    save_like_eventgpt(folder / "pickled.npy", events)
    table = np.zeros(400, dtype=[("t", "<i8"), ("x", "<u2"), ("y", "<u2"), ("p", "?")])
    np.save(folder / "table.npy", table)
    files += [(".npy", (folder / name).read_bytes()) for name in ("pickled.npy", "table.npy")]
    files += [(".aedat4", aedat4(pack, code, 50)) for pack, code in ((bytes, 0), (pack_zstd, 3))]
    blosc = hdf5plugin.Blosc(cname="lz4")
    for packing in (
        {},
        {"chunks": (100,)},
        {"chunks": (100,), "compression": "gzip"},
        {"chunks": (100,), **blosc},
    ):
        files.append((".h5", write_h5(folder / "layout.h5", events, packing)))
    frames = np.random.default_rng(0).integers(0, 255, (4, 32, 32, 3), dtype=np.uint8)
    for suffix in (".mp4", ".mkv"):
        Video.from_frames(frames, fps=10).write(folder / f"clip{suffix}")
        files.append((suffix, (folder / f"clip{suffix}").read_bytes()))
    return files


def mutated(data: bytes, rng: random.Random) -> bytes:
    """``data`` with one to eight injuries."""
    wounded = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        # Headers are short and decide most: half of the injuries land there.
        reach = min(len(wounded), rng.choice((64, 512, 4096, len(wounded), len(wounded))))
        place = rng.randrange(reach) if reach else 0
        match rng.randrange(8):
            case 0:
                del wounded[place:]
            case 1:
                wounded[place : place + 1] = rng.randbytes(1)
            case 2:
                wounded[place : place + 1] = bytes([1 << rng.randrange(8)])
            case 3:
                number = rng.choice(EXTREMES)
                size = rng.choice((1, 2, 4, 8))
                wounded[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
            case 4:
                del wounded[place : place + rng.randrange(1, 64)]
            case 5:
                wounded[place:place] = rng.randbytes(rng.randrange(1, 64))
            case 6:
                wounded[place : place + 32] = bytes(32)
            case 7:
                other = rng.randrange(len(wounded) + 1)
                wounded[place : place + 64] = wounded[other : other + 64]
    return bytes(wounded)


def crafted_files(folder: Path, canary: Path, bomb_bytes: int) -> list[tuple[str, str, bytes]]:
    """(name, suffix, content) of files written with intent; none may create ``canary``.

    What unpacks to more than it should unpacks to ``bomb_bytes``.
    """
    return [
        *hostile_pickles(canary),
        *hostile_arrays(),
        *hostile_archives(bomb_bytes),
        *hostile_hdf5(folder, bomb_bytes),
        *hostile_aedat4(bomb_bytes),
        *_texts(),
    ]


def _texts():
    events = "5,1,2,1\n"
    yield "csv long line", ".csv", b"t,x,y,p\n" + b"1" * 5_000_000
    yield "csv long header", ".csv", b"t," * 3_000_000
    yield "csv wide", ".csv", b"t,x,y,p\n" + b"1," * 2000 + b"1\n"
    yield "csv digits", ".csv", b"t,x,y,p\n" + b"9" * 4000 + b",1,1,1\n"
    for header in (
        "t,x@-5,y@3,p",
        "t,x@99999999999999999999,y@3,p",
        "t,x@1e9,y@3,p",
        "t,t,t,t",
        "",
    ):
        yield f"csv {header}", ".csv", f"{header}\n{events}".encode()
    for row in (
        "nan,1,2,1",
        "1e400,1,2,1",
        "5,1",
        "5,1,2,9",
        "-1,1,2,1",
        "٣,1,2,1",
        "5,\0,2,1",
        "=cmd|'/c'!A,1,2,1",
    ):
        yield f"csv {row}", ".csv", f"t,x@64,y@48,p\n{row}\n".encode()
    yield "raw endless header", ".raw", b"% " + b"a" * 3_000_000
    yield "raw many lines", ".raw", b"% a b\n" * 500_000
    for text in (
        "t0 99999999999999999999",
        "t0 -5",
        "t0 x",
        "geometry 999999x1",
        "geometry 0x0",
        "width 9" * 9,
    ):
        lines = f"% evt 3.0\n% {text}\n% geometry 64x48\n".encode()
        yield f"raw {text[:12]}", ".raw", lines + struct.pack("<4H", 0x8001, 0x6002, 7, 0x2005)
        lines = f"% Version 2\n% {text}\n% Width 64\n% Height 48\n".encode()
        yield f"dat {text[:12]}", ".dat", lines + b"\x0c\x08" + bytes(32)
    falls = struct.pack("<8H", 0x8FFF, 0x8000, 0x6002, 7, 0x2005, 0x8FFF, 0x8000, 0x2005)
    yield "raw wraps", ".raw", b"% evt 3.0\n% geometry 64x48\n" + falls * 40_000
    vectors = struct.pack("<3H", 0x3000, 0x4FFF, 0x5FFF)
    start = struct.pack("<3H", 0x8001, 0x6002, 7)
    yield "raw vectors", ".raw", b"% evt 3.0\n% geometry 64x48\n" + start + vectors * 300_000
    yield (
        "raw run of vectors",
        ".raw",
        b"% evt 3.0\n% geometry 64x48\n" + start + vectors[2:4] * 500_000,
    )
    yield "dat kind", ".dat", b"% Version 2\n\xff\xff" + bytes(64)
    yield "dat no header", ".dat", bytes(64)
    for suffix in (".npy", ".npz", ".h5", ".raw", ".dat", ".aedat4", ".csv", ".mp4"):
        yield f"empty {suffix}", suffix, b""
        yield f"zeros {suffix}", suffix, bytes(4096)
