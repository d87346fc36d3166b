"""Small files that once cost seconds: each is read or refused at once.

The bounds are wide, for busy machines; before they were mended each file took many times more.
"""

import io
import pickle
import struct
import time
import zipfile

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.readers.opening import open_recording

for optional in ("h5py", "hdf5plugin", "lz4", "zstandard"):
    pytest.importorskip(optional)
import h5py
import lz4.frame
import zstandard

from tests.media.hostile_containers import aedat4, aedat4_head, flat_table
from tests.media.hostile_numpy import npy, object_npy

SENSOR = SensorSize(64, 48)


def cost_s(suffix, content):
    """The processor's time until the recording is read or refused."""
    started = time.process_time()
    try:
        with open_recording(f"it{suffix}", SENSOR, 5_000_000, content=content) as recording:
            recording.read(10**9, 10**9 + 1)  # after everything: all of it is passed over
            recording.read_all()
    except MediaError:
        pass
    return time.process_time() - started


def doubled(depth):
    """Instructions that put on the stack a tuple of twice the same tuple, ``depth`` times over."""
    return b")\x94" + b"".join(b"h" + bytes([i]) + b"\x86\x94" for i in range(depth))


REBUILD = b"cnumpy._core.multiarray\n_reconstruct\n"


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x04}" + doubled(60) + b"Ns.",
        b"\x80\x04" + doubled(60) + b"\x8c\x01x\x93.",
        b"\x80\x04\x8c\x01x" + doubled(60) + b"\x93.",
        b"\x80\x04" + REBUILD + doubled(60) + b"\x85R.",
        b"\x80\x04cnumpy\ndtype\n" + doubled(60) + b"\x85R.",
        b"\x80\x04cnumpy\ndtype\n\x8c\x02i8\x85R(K\x03" + doubled(60) + b"tb.",
        b"\x80\x04" + doubled(60) + b".",
    ],
    ids=["key", "module", "name", "array", "dtype", "order", "alone"],
)
@pytest.mark.parametrize("header", ["'|O'", "'O'", '"|O"'])
def test_a_tuple_that_doubles_is_refused_in_milliseconds(program, header):
    text = f"{{'descr': {header}, 'fortran_order': False, 'shape': (), }}"
    assert cost_s(".npy", npy(text, program)) < 0.5


def test_a_doubled_tuple_as_shape_is_refused_in_milliseconds():
    column = pickle.dumps({"x": np.arange(3)}, protocol=4)
    shape = b"K\x03\x85\x94"
    assert column.count(shape) == 1
    assert cost_s(".npy", object_npy(column.replace(shape, doubled(60) + b"\x85\x94"))) < 0.5


def event_packets(pack, code, num_events, num_bytes):
    records = b"".join(struct.pack("<qhhB3x", i, i % 64, i % 48, 1) for i in range(num_events))
    table = flat_table(b"EVTS", [("vector", struct.pack("<I", num_events) + records)])
    packed = pack(struct.pack("<I", len(table)) + table)
    packet = struct.pack("<ii", 0, len(packed)) + packed
    return aedat4_head(code) + packet * (num_bytes // len(packet))


@pytest.mark.parametrize(
    ("pack", "code"),
    [(bytes, 0), (lz4.frame.compress, 1), (zstandard.ZstdCompressor().compress, 3)],
    ids=["plain", "lz4", "zstd"],
)
def test_packets_without_events_cost_little(pack, code):
    assert cost_s(".aedat4", event_packets(pack, code, 0, 126_000)) < 1.0
    endless = event_packets(pack, code, 0, 4_000_000)
    assert cost_s(".aedat4", endless) < 3.0
    with pytest.raises(MediaError, match="packets are empty"):
        open_recording("it.aedat4", content=endless).read_all()


def test_a_packet_that_swells_is_refused():
    for pack, code in ((lz4.frame.compress, 1), (zstandard.ZstdCompressor().compress, 3)):
        zeros = flat_table(b"EVTS", [("vector", struct.pack("<I", 10**6) + bytes(16 * 10**6))])
        packed = pack(struct.pack("<I", len(zeros)) + zeros)
        content = aedat4_head(code) + struct.pack("<ii", 0, len(packed)) + packed
        with pytest.raises(MediaError, match="more than a packet may"):
            open_recording("it.aedat4", content=content).read_all()
    padded = flat_table(b"EVTS", [("vector", struct.pack("<I", 0) + bytes(10_000))])
    packed = struct.pack("<I", len(padded)) + padded
    content = aedat4_head(0) + struct.pack("<ii", 0, len(packed)) + packed
    with pytest.raises(MediaError, match="more than its events"):
        open_recording("it.aedat4", content=content).read_all()


def test_packets_that_unpack_to_much_and_hold_nothing_cost_little():
    table = flat_table(b"EVTS", [("vector", struct.pack("<I", 0) + bytes(60 << 20))])
    packed = zstandard.ZstdCompressor().compress(struct.pack("<I", len(table)) + table)
    packet = struct.pack("<ii", 0, len(packed)) + packed
    content = aedat4_head(3) + packet * (126_000 // len(packet))
    assert content.count(packet) > 15  # 60 MiB each
    assert cost_s(".aedat4", content) < 1.0


def test_packets_of_other_streams_are_passed_over():
    ours = aedat4(bytes, 0, 50)
    head = aedat4_head(0)
    other = struct.pack("<ii", 7, 100) + bytes(100)
    content = head + other * 3 + ours[len(head) :] + other
    assert len(open_recording("it.aedat4", content=content).read_all()) == 50


NODE = '<node name="0" path="a/outInfo/0/">'


@pytest.mark.parametrize(
    "text",
    [
        NODE + 'key="typeIdentifier"' * 50_000,
        NODE + 'key="typeIdentifier">EVTS<' + 'key="sizeX"' * 80_000,
        '<node name="0" path="' + "/outInfo/0" * 90_000,
    ],
    ids=["type", "size", "path"],
)
def test_a_header_that_never_closes_is_read_once(text):
    assert cost_s(".aedat4", aedat4_head(0, text)) < 2.0


def test_blank_lines_are_not_a_table():
    with pytest.raises(MediaError, match="blank"):
        open_recording("it.csv", SENSOR, content=b"t,x,y,p\n" + b"\n" * 100_000).read_all()
    some = b"t,x,y,p\n\n5,1,1,1\n\n\n6,1,1,1\n" + b"\n" * 900
    assert len(open_recording("it.csv", SENSOR, content=some).read_all()) == 2


def test_an_archive_of_very_many_members_is_refused_unopened():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for index in range(2_000):
            archive.writestr(str(index), b"")
    with pytest.raises(MediaError, match="too many members"):
        open_recording("it.npz", SENSOR, content=stream.getvalue())


def hdf5(num_events, **packing):
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for name in "xytp":
            values = np.zeros(num_events, "u8" if name == "t" else "u1")
            file.create_dataset(f"events/{name}", data=values, **packing)
    return stream.getvalue()


def test_chunks_of_a_single_event_are_refused():
    with pytest.raises(MediaError, match="repack it larger"):
        open_recording("it.h5", SENSOR, content=hdf5(5_000, chunks=(1,)))
    few = open_recording("it.h5", SENSOR, content=hdf5(500, chunks=(1,)))
    assert few.num_events == 500


def test_a_large_chunk_is_unpacked_once_for_a_search():
    content = hdf5(1 << 22, chunks=(1 << 22,), compression="gzip")
    assert len(content) < 100_000
    started = time.process_time()
    with open_recording("it.h5", SENSOR, content=content) as recording:
        assert len(recording.read(10**6, 10**6 + 1)) == 0
    assert time.process_time() - started < 1.5
