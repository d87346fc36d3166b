"""Files made to hurt a reader: small valid ones to corrupt, and ones written with intent."""

import io
import pickle
import random
import struct
import zipfile
import zlib
from pathlib import Path

import h5py
import hdf5plugin
import lz4.frame
import numpy as np
import zstandard

from headstart.media.events import SensorSize
from headstart.media.video import Video
from headstart.media.writers.writing import write_recording
from tests.media.synthetic import random_events, save_like_eventgpt

SENSOR = SensorSize(64, 48)
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
    files += [(".aedat4", _aedat4(pack, code, 50)) for pack, code in ((bytes, 0), (_zstd, 3))]
    blosc = hdf5plugin.Blosc(cname="lz4")
    for packing in (
        {},
        {"chunks": (100,)},
        {"chunks": (100,), "compression": "gzip"},
        {"chunks": (100,), **blosc},
    ):
        files.append((".h5", _h5(folder / "layout.h5", events, packing)))
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
        *_pickles(canary),
        *_numpy_lies(),
        *_archives(bomb_bytes),
        *_hdf5(folder, bomb_bytes),
        *_aedat4_lies(bomb_bytes),
        *_texts(),
    ]


class _Call:
    def __init__(self, function, *arguments):
        self._call = (function, arguments)

    def __reduce__(self):
        return self._call


def _npy(header: str, content: bytes, version: bytes = b"\x01\x00") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + content


def _object_npy(pickled: bytes) -> bytes:
    return _npy("{'descr': '|O', 'fortran_order': False, 'shape': (), }", pickled)


def _pickles(canary):
    import builtins
    import os
    import subprocess

    touch = f"touch {canary}"
    calls = [
        _Call(os.system, touch),
        _Call(subprocess.check_output, ["touch", str(canary)]),
        _Call(builtins.eval, f"open({str(canary)!r}, 'w')"),
        _Call(builtins.exec, f"open({str(canary)!r}, 'w')"),
        _Call(builtins.open, str(canary), "w"),
        _Call(np.zeros, (1 << 40,)),
        _Call(np.load, str(canary)),
        _Call(bytearray, 1 << 40),
    ]
    for index, call in enumerate(calls):
        for protocol in range(6):
            for kind, value in (
                ("bare", call),
                ("key", {"x": call}),
                ("array", np.array({"x": np.arange(3), "t": call}, dtype=object)),
            ):
                pickled = pickle.dumps(value, protocol=protocol)
                yield f"pickle {index} {protocol} {kind}", ".npy", _object_npy(pickled)
    rebuild = b"cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    programs = {
        "memo": b"\x80\x04Nr\xff\xff\xff\x7f.",
        "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b".",
        "text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b".",
        "long": b"\x80\x04\x8b" + struct.pack("<I", 1 << 31) + b".",
        "deep": b"\x80\x04" + b"(" * 200_000 + b".",
        "nested": b"\x80\x04" + b")" + b"\x85" * 9_000 + b".",
        "endless": b"\x80\x04" + b"N0" * 500_000 + b".",
        "doubling": b"\x80\x04]" + b"\x94(h\x00h\x00h\x00e" * 3000 + b".",
        "itself": b"\x80\x04]\x94h\x00a.",
        "dictionary of itself": b"\x80\x04}\x94X\x01\x00\x00\x00xh\x00s.",
        "shape": b"\x80\x02" + rebuild + b"K\x01\x8a\x06\0\0\0\0\0\x01\x85C\x01b\x87R.",
        "build a name": b"\x80\x02cnumpy\nndarray\n}b.",
        "call an array": b"\x80\x02" + rebuild + b"\x85R)R.",
        "inst": b"(S'touch'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'touch'\no.",
        "newobj": b"\x80\x02cnumpy\nndarray\n)\x81.",
        "persistent": b"Pevil\n.",
        "extension": b"\x80\x02\x82\x01.",
        "empty": b"",
        "stop": b".",
        "underflow": b"\x80\x04\x87.",
        "unmarked": b"\x80\x04t.",
        "unhashable": b"\x80\x04}]Ns.",
    }
    for name, program in programs.items():
        yield f"pickle {name}", ".npy", _object_npy(program)


def _numpy_lies():
    for descr in ("<i8", "|O", "<U99999999", "|V2147483647", "<f8", "|V0", "<M8[us]"):
        for shape in (
            "(1099511627776,)",
            "(-1,)",
            "(0,)",
            "()",
            "(2, 3)",
            "(True,)",
            "(1e9,)",
            "(" * 900,
        ):
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
            yield f"npy {descr} {shape[:9]}", ".npy", _npy(header, bytes(64))
    table = "[('t', '<i8'), ('x', '<u2'), ('y', '<u2'), ('p', '|O')]"
    for text in (
        f"{{'descr': {table}, 'fortran_order': False, 'shape': (3,), }}",
        "{'descr': [('x', '<i8', (99999, 99999))], 'fortran_order': False, 'shape': (3,), }",
        "{" * 5000,
        "[" * 5000,
        "-" * 5000 + "1",
        "9" * 9000,
        "__import__('os').system('true')",
        "{'descr': '<i8'}",
        "\0" * 500,
    ):
        yield f"npy header {text[:9]}", ".npy", _npy(text, bytes(64))
    yield "npy version", ".npy", _npy("{}", b"", b"\x09\x00")
    yield "npy long header", ".npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 200


def _zip(members, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, pieces in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
    return stream.getvalue()


def _archives(bomb_bytes):
    zeros = bytes(1 << 20)
    plain = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }"
    for count in (5_000_000, bomb_bytes // 8, 1 << 50):
        head = _npy(plain % count, b"")
        yield f"npz of {count}", ".npz", _zip({key: [head, zeros] for key in "xytp"})
    for count in (4, bomb_bytes // 8):
        pieces = [_npy(plain % count, b""), *[zeros] * (bomb_bytes >> 20)]
        yield f"npz bomb {count}", ".npz", _zip({**{key: [head] for key in "xyt"}, "p": pieces})
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        head = _npy(plain % 4_000_000, b"")
        yield f"npz packed {method}", ".npz", _zip({"x": [head, *[zeros] * 32]}, method)
    evil = _object_npy(pickle.dumps(_Call(print, "run")))
    yield "npz pickled", ".npz", _zip({name: [evil] for name in ("x", "y", "t", "p", "sensor")})
    yield "npz empty", ".npz", _zip({})
    sides = struct.pack("<qq", -5, 1 << 62)
    size = _npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", sides)
    four = [_npy(plain % 4, bytes(32))]
    yield "npz sensor", ".npz", _zip({"sensor": [size], **dict.fromkeys("xytp", four)})
    good = _zip(dict.fromkeys("xytp", four))
    yield "npz declared size", ".npz", good.replace(struct.pack("<I", 160), b"\xff\xff\xff\x7f")


def _h5(path, events, packing):
    t = events.t - events.t[0]
    with h5py.File(path, "w") as file:
        for name, values in (("x", events.x), ("y", events.y), ("t", t), ("p", events.p)):
            stored = values.astype("u4" if name == "t" else "u2")
            file.create_dataset(f"events/{name}", data=stored, **packing)
        file["ms_to_idx"] = np.searchsorted(t, np.arange(51) * 1000).astype("u8")
        file["t_offset"] = np.int64(51_836_949_776)
    return path.read_bytes()


def _hdf5(folder, bomb_bytes):
    events = random_events(100, sensor=SENSOR)
    path = folder / "crafted.h5"

    def spoiled(spoil, **packing):
        _h5(path, events, packing)
        with h5py.File(path, "a") as file:
            spoil(file)
        return path.read_bytes()

    def replace(file, name, **how):
        del file[name]
        file.create_dataset(name, **how)

    def link(file, target):
        del file["events/t"]
        file["events/t"] = target

    yield (
        "h5 huge unwritten",
        ".h5",
        spoiled(
            lambda f: [
                replace(f, f"events/{n}", shape=(1 << 40,), chunks=(1 << 20,), dtype="u8")
                for n in "xytp"
            ]
        ),
    )
    yield (
        "h5 huge contiguous",
        ".h5",
        spoiled(
            lambda f: [replace(f, f"events/{n}", shape=(1 << 40,), dtype="u8") for n in "xytp"]
        ),
    )
    yield (
        "h5 huge chunk",
        ".h5",
        spoiled(
            lambda f: replace(
                f, "events/t", shape=(100,), maxshape=(None,), chunks=(1 << 28,), dtype="u8"
            )
        ),
    )
    yield (
        "h5 external link",
        ".h5",
        spoiled(lambda f: link(f, h5py.ExternalLink("/etc/passwd", "/x"))),
    )
    yield "h5 soft link", ".h5", spoiled(lambda f: link(f, h5py.SoftLink("/events/t")))
    yield (
        "h5 external data",
        ".h5",
        spoiled(
            lambda f: replace(
                f, "events/t", shape=(100,), dtype="u8", external=[("/etc/passwd", 0, 800)]
            )
        ),
    )
    yield "h5 strings", ".h5", spoiled(lambda f: replace(f, "events/t", data=["a"] * 100))
    yield (
        "h5 group",
        ".h5",
        spoiled(lambda f: (f.__delitem__("events/t"), f.create_group("events/t"))),
    )
    yield (
        "h5 attribute",
        ".h5",
        spoiled(lambda f: f.attrs.update(sensor_width=np.arange(8000), sensor_height=1)),
    )
    # A chunk that unpacks to far more than a chunk.
    bomb = _packed_zeros(zlib.compressobj(1), bomb_bytes)
    yield (
        "h5 gzip bomb",
        ".h5",
        spoiled(
            lambda f: f["events/t"].id.write_direct_chunk((0,), bomb),
            chunks=(100,),
            compression="gzip",
        ),
    )
    blosc = hdf5plugin.Blosc(cname="zstd")
    claim = bytes([2, 1, 0x84, 4]) + struct.pack("<III", 0x7FFFFFF0, 1 << 20, 100) + bytes(84)
    yield (
        "h5 blosc claim",
        ".h5",
        spoiled(lambda f: f["events/t"].id.write_direct_chunk((0,), claim), chunks=(100,), **blosc),
    )
    yield (
        "h5 mask",
        ".h5",
        spoiled(
            lambda f: f["events/t"].id.write_direct_chunk((0,), bytes(40), 1),
            chunks=(100,),
            **blosc,
        ),
    )
    yield "h5 signature alone", ".h5", b"\x89HDF\r\n\x1a\n" + bytes(200)


def _packed_zeros(packer, num_bytes):
    zeros = bytes(1 << 20)
    return b"".join(packer.compress(zeros) for _ in range(num_bytes >> 20)) + packer.flush()


def _packed_lz4_zeros(num_bytes):
    packer = lz4.frame.LZ4FrameCompressor()
    return packer.begin() + _packed_zeros(packer, num_bytes)


def _zstd(data):
    return zstandard.ZstdCompressor().compress(data)


def _flat(identifier: bytes, fields: list[tuple[str, bytes]]) -> bytes:
    """A FlatBuffers root table: scalars inline, vectors after it."""
    inline = [value if kind == "scalar" else bytes(4) for kind, value in fields]
    offsets, position = [], 4
    for value in inline:
        offsets.append(position)
        position += len(value)
    vtable = struct.pack(f"<HH{len(fields)}H", 4 + 2 * len(fields), position, *offsets)
    table_at = 8 + len(vtable)
    body = bytearray(struct.pack("<i", len(vtable)) + b"".join(inline))
    tail = b""
    for (kind, value), offset in zip(fields, offsets, strict=True):
        if kind == "vector":
            struct.pack_into("<I", body, offset, len(body) + len(tail) - offset)
            tail += value
    return struct.pack("<I", table_at) + identifier + vtable + bytes(body) + tail


def _aedat4_head(code, xml=None, end=-1):
    text = xml or (
        '<node name="0" path="/mainloop/Recorder/outInfo/0/">'
        '<attr key="typeIdentifier" type="string">EVTS</attr>'
        '<attr key="sizeX" type="int">64</attr><attr key="sizeY" type="int">48</attr></node>'
    )
    vector = struct.pack("<I", len(text)) + text.encode()
    table = _flat(
        b"IOHE",
        [
            ("scalar", struct.pack("<i", code)),
            ("scalar", struct.pack("<q", end)),
            ("vector", vector),
        ],
    )
    return b"#!AER-DAT4.0\r\n" + struct.pack("<I", len(table)) + table


def _aedat4(pack, code, num_events, claimed=None, **head):
    records = b"".join(struct.pack("<qhhB3x", i, i % 64, i % 48, i % 2) for i in range(num_events))
    claimed = num_events if claimed is None else claimed
    packet = _flat(b"EVTS", [("vector", struct.pack("<I", claimed) + records)])
    packed = pack(struct.pack("<I", len(packet)) + packet)
    return _aedat4_head(code, **head) + struct.pack("<ii", 0, len(packed)) + packed


def _aedat4_lies(bomb_bytes):
    head = _aedat4_head(1)
    for name, code, packed in (
        ("lz4", 1, _packed_lz4_zeros(bomb_bytes)),
        ("zstd", 3, _packed_zeros(zstandard.ZstdCompressor().compressobj(), bomb_bytes)),
        (
            "window",
            3,
            zstandard.ZstdCompressor(
                compression_params=zstandard.ZstdCompressionParameters(
                    window_log=30, enable_ldm=True
                )
            )
            .compressobj()
            .compress(b"x"),
        ),
    ):
        packet = struct.pack("<ii", 0, len(packed)) + packed
        yield f"aedat4 {name} bomb", ".aedat4", _aedat4_head(code) + packet
    for size in (-1, -(1 << 31), (1 << 31) - 1, 0, 3):
        yield f"aedat4 packet {size}", ".aedat4", head + struct.pack("<ii", 0, size) + bytes(50)
    for claimed in (51, 1 << 28, (1 << 32) - 1):
        yield f"aedat4 claims {claimed}", ".aedat4", _aedat4(bytes, 0, 50, claimed)
    for code in (-1, 5, 99):
        yield f"aedat4 code {code}", ".aedat4", _aedat4(bytes, code, 5)
    for end in (0, 5, 1 << 62, -(1 << 62)):
        yield f"aedat4 end {end}", ".aedat4", _aedat4(bytes, 0, 5, end=end)
    for xml in (
        "<node " * 9000,
        '<node name="0" path="' * 20_000,
        "<!DOCTYPE a [" * 99,
        "\xff" * 99,
    ):
        yield f"aedat4 xml {xml[:9]}", ".aedat4", _aedat4(bytes, 0, 5, xml=xml)
    for size in (0, 1, 1 << 20, (1 << 32) - 1):
        yield f"aedat4 header {size}", ".aedat4", b"#!AER-DAT4.0\r\n" + struct.pack("<I", size)


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
