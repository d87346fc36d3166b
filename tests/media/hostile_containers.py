"""Hostile HDF5 and AEDAT4: links, claims and packets that are not what they say."""

import struct
import zlib

import h5py
import hdf5plugin
import lz4.frame
import numpy as np
import zstandard

from headstart.media.events import SensorSize
from tests.media.synthetic import random_events

SENSOR = SensorSize(64, 48)


def write_h5(path, events, packing):
    t = events.t - events.t[0]
    with h5py.File(path, "w") as file:
        for name, values in (("x", events.x), ("y", events.y), ("t", t), ("p", events.p)):
            stored = values.astype("u4" if name == "t" else "u2")
            file.create_dataset(f"events/{name}", data=stored, **packing)
        file["ms_to_idx"] = np.searchsorted(t, np.arange(51) * 1000).astype("u8")
        file["t_offset"] = np.int64(51_836_949_776)
    return path.read_bytes()


def hostile_hdf5(folder, bomb_bytes):
    events = random_events(100, sensor=SENSOR)
    path = folder / "crafted.h5"

    def spoiled(spoil, **packing):
        write_h5(path, events, packing)
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


def pack_zstd(data):
    return zstandard.ZstdCompressor().compress(data)


def flat_table(identifier: bytes, fields: list[tuple[str, bytes]]) -> bytes:
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


def aedat4_head(code, xml=None, end=-1):
    text = xml or (
        '<node name="0" path="/mainloop/Recorder/outInfo/0/">'
        '<attr key="typeIdentifier" type="string">EVTS</attr>'
        '<attr key="sizeX" type="int">64</attr><attr key="sizeY" type="int">48</attr></node>'
    )
    vector = struct.pack("<I", len(text)) + text.encode()
    table = flat_table(
        b"IOHE",
        [
            ("scalar", struct.pack("<i", code)),
            ("scalar", struct.pack("<q", end)),
            ("vector", vector),
        ],
    )
    return b"#!AER-DAT4.0\r\n" + struct.pack("<I", len(table)) + table


def aedat4(pack, code, num_events, claimed=None, **head):
    records = b"".join(struct.pack("<qhhB3x", i, i % 64, i % 48, i % 2) for i in range(num_events))
    claimed = num_events if claimed is None else claimed
    packet = flat_table(b"EVTS", [("vector", struct.pack("<I", claimed) + records)])
    packed = pack(struct.pack("<I", len(packet)) + packet)
    return aedat4_head(code, **head) + struct.pack("<ii", 0, len(packed)) + packed


def hostile_aedat4(bomb_bytes):
    head = aedat4_head(1)
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
        yield f"aedat4 {name} bomb", ".aedat4", aedat4_head(code) + packet
    for size in (-1, -(1 << 31), (1 << 31) - 1, 0, 3):
        yield f"aedat4 packet {size}", ".aedat4", head + struct.pack("<ii", 0, size) + bytes(50)
    for claimed in (51, 1 << 28, (1 << 32) - 1):
        yield f"aedat4 claims {claimed}", ".aedat4", aedat4(bytes, 0, 50, claimed)
    for code in (-1, 5, 99):
        yield f"aedat4 code {code}", ".aedat4", aedat4(bytes, code, 5)
    for end in (0, 5, 1 << 62, -(1 << 62)):
        yield f"aedat4 end {end}", ".aedat4", aedat4(bytes, 0, 5, end=end)
    for xml in (
        "<node " * 9000,
        '<node name="0" path="' * 20_000,
        "<!DOCTYPE a [" * 99,
        "\xff" * 99,
    ):
        yield f"aedat4 xml {xml[:9]}", ".aedat4", aedat4(bytes, 0, 5, xml=xml)
    for size in (0, 1, 1 << 20, (1 << 32) - 1):
        yield f"aedat4 header {size}", ".aedat4", b"#!AER-DAT4.0\r\n" + struct.pack("<I", size)
