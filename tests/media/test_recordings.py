"""Every format through the one port: what was written is what is read."""

import pickle
import struct

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart_events.readers.opening import SUFFIXES, open_recording, reader_of
from headstart_events.writers.writing import WRITERS, write_recording
from tests.media.samples import sample
from tests.media.synthetic import SENSOR, random_events, save_like_eventgpt

WRITABLE = sorted(WRITERS)
ABSOLUTE_US = 51_836_949_776


@pytest.mark.parametrize("suffix", WRITABLE)
@pytest.mark.parametrize("num_events", [0, 1, 70_000])
def test_a_round_trip_through_every_writable_format_is_identity(tmp_path, suffix, num_events):
    events = random_events(num_events, start_us=ABSOLUTE_US, duration_us=3_000_000)
    pieces = [events[:5], events[5:5], events[5:20_000], events[20_000:]]
    path = tmp_path / f"recording{suffix}"
    write_recording(path, pieces, events.sensor)
    with open_recording(path) as recording:
        assert recording.sensor == events.sensor
        assert recording.read_all().digest() == events.digest()
        assert recording.num_events in (None, num_events)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", WRITABLE)
def test_long_pauses_survive_every_clock_that_wraps(tmp_path, suffix):
    # EVT3 counts 17 s, DAT 71 minutes; the second pause passes the first more than once.
    pauses = (8_500_000, 40_000_000, 20 * 60 * 1_000_000, 25 * 60 * 1_000_000, 16_777_216)
    events = random_events(5000, start_us=ABSOLUTE_US, pauses_us=pauses)
    path = tmp_path / f"recording{suffix}"
    write_recording(path, [events], events.sensor)
    with open_recording(path) as recording:
        assert recording.read_all().digest() == events.digest()
        assert recording.first_us == events.t[0]


@pytest.mark.parametrize("suffix", WRITABLE)
def test_a_window_equals_the_same_window_of_the_whole(tmp_path, suffix):
    events = random_events(100_000, start_us=ABSOLUTE_US, duration_us=1_000_000)
    path = tmp_path / f"recording{suffix}"
    write_recording(path, [events], events.sensor)
    with open_recording(path) as recording:
        for start, stop in [(0, 50_000), (123_456, 173_456), (999_000, 2_000_000), (-5, 0), (7, 7)]:
            window = recording.read(ABSOLUTE_US + start, ABSOLUTE_US + stop)
            expected = events.between(ABSOLUTE_US + start, ABSOLUTE_US + stop)
            assert window.digest() == expected.digest()


@pytest.mark.parametrize("suffix", WRITABLE)
def test_a_limit_on_events_holds_for_every_format(tmp_path, suffix):
    events = random_events(5000)
    path = tmp_path / f"recording{suffix}"
    write_recording(path, [events], events.sensor)
    with pytest.raises(MediaError, match="raise max_events"):
        open_recording(path, max_events=4999).read_all()
    assert len(open_recording(path, max_events=5000).read_all()) == 5000


@pytest.mark.parametrize("suffix", WRITABLE)
def test_a_file_and_its_caller_must_agree_on_the_sensor(tmp_path, suffix):
    path = tmp_path / f"recording{suffix}"
    write_recording(path, [random_events(10)], SENSOR)
    with pytest.raises(MediaError, match="leave the size out"):
        open_recording(path, sensor=SensorSize(1280, 720))


def pickle_like_eventgpt(path, events, t_dtype, protocol):
    save_like_eventgpt(path, events, t_dtype)
    columns = {"x": events.x, "y": events.y, "t": events.t.astype(t_dtype), "p": events.p}
    pickled = pickle.dumps(np.array(columns, dtype=object), protocol=protocol)
    path.write_bytes(path.read_bytes()[:128] + pickled)


@pytest.mark.parametrize("t_dtype", [np.uint16, np.uint32, np.int64, ">i8"])
@pytest.mark.parametrize("protocol", [3, 4])
def test_eventgpts_pickled_dictionary_is_read_without_pickle(tmp_path, t_dtype, protocol):
    events = random_events(3000)
    pickle_like_eventgpt(tmp_path / "events.npy", events, t_dtype, protocol)
    read = open_recording(tmp_path / "events.npy", sensor=SENSOR).read_all()
    assert read.digest() == events.digest()


@pytest.mark.parametrize("protocol", [0, 1, 2, 5])
def test_pickles_that_need_more_than_arrays_are_refused(tmp_path, protocol):
    pickle_like_eventgpt(tmp_path / "events.npy", random_events(30), np.int64, protocol)
    with pytest.raises(MediaError, match=r"numpy\.savez"):
        open_recording(tmp_path / "events.npy", sensor=SENSOR)


def test_a_structured_array_is_read(tmp_path):
    events = random_events(3000)
    table = np.empty(3000, dtype=[("t", "<i8"), ("x", "<u2"), ("y", "<u2"), ("p", "?")])
    for name in table.dtype.names:
        table[name] = getattr(events, name)
    np.save(tmp_path / "events.npy", table)
    read = open_recording(tmp_path / "events.npy", sensor=SENSOR).read_all()
    assert read.digest() == events.digest()


def test_a_format_without_a_sensor_size_needs_one(tmp_path):
    save_like_eventgpt(tmp_path / "events.npy", random_events(10))
    (tmp_path / "events.csv").write_text("timestamp,x,y,polarity\n5,1,2,1\n\n7,3,4,0\n")
    for name in ("events.npy", "events.csv"):
        with pytest.raises(MediaError, match="--sensor 640x480"):
            open_recording(tmp_path / name)
    table = open_recording(tmp_path / "events.csv", sensor=SENSOR).read_all()
    assert table.t.tolist() == [5, 7]
    assert table.p.tolist() == [True, False]


def test_events_out_of_order_are_refused_unless_sorting_is_asked_for(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("t,x,y,p\n7,3,4,0\n5,1,2,1\n")
    with pytest.raises(MediaError, match="times go back"):
        open_recording(path, sensor=SENSOR).read_all()
    with open_recording(path, sensor=SENSOR, sort=True) as recording:
        assert recording.read_all().t.tolist() == [5, 7]
        assert recording.read(6, 9).x.tolist() == [3]


def evt3(*words):
    header = b"% evt 3.0\n% geometry 640x480\n"
    return header + struct.pack(f"<{len(words)}H", *words)


def test_evt3_vectors_and_held_values_follow_the_words(tmp_path):
    path = tmp_path / "vectors.raw"
    path.write_bytes(
        evt3(
            0x2005,  # an event before any time: has none, dropped
            0x8001,  # time high 1
            0x6002,  # time low 2
            0x0007,  # y 7
            0x3800 | 100,  # base x 100, brighter
            0x4000 | 0b1000_0000_0001,  # 100 and 111
            0x5000 | 0b1000_0010,  # 112 + 1 and 112 + 7
            0x2000 | 33,  # x 33 alone, darker; leaves the base alone
            0x5000 | 1,  # 120
            0x8002,  # a new high part starts at low 0
            0x0009,
            0x2800 | 5,
            0xA000,  # a trigger: passed over
        )
    )
    events = open_recording(path).read_all()
    assert events.x.tolist() == [100, 111, 113, 119, 33, 120, 5]
    assert events.y.tolist() == [7, 7, 7, 7, 7, 7, 9]
    assert events.p.tolist() == [True, True, True, True, False, True, True]
    assert events.t.tolist() == [4098] * 6 + [8192]


@pytest.mark.parametrize("block_bytes", [2, 6, 64, 1 << 20])
def test_raw_decoding_does_not_depend_on_where_blocks_end(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr("headstart_events.readers.prophesee.BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(0)
    kinds = rng.choice([0x0, 0x2, 0x3, 0x4, 0x5, 0x6], 300)
    values = np.where(kinds == 0x6, np.arange(300), rng.integers(0, 400, 300))
    path = tmp_path / "random.raw"
    path.write_bytes(evt3(0x8000, *(kinds << 12 | values).tolist()))
    monkeypatch.undo()
    whole = open_recording(path, sort=True).read_all()
    monkeypatch.setattr("headstart_events.readers.prophesee.BLOCK_BYTES", block_bytes)
    assert open_recording(path, sort=True).read_all().digest() == whole.digest()
    assert len(whole) > 100


@pytest.mark.parametrize("version", ["evt2", "evt3"])
def test_raw_agrees_with_faery_both_ways(tmp_path, version):
    faery = pytest.importorskip("faery")
    encoder = pytest.importorskip("faery.file_encoder")
    events = random_events(20_000, start_us=ABSOLUTE_US)
    table = np.empty(len(events), dtype=faery.EVENTS_DTYPE)
    table["t"], table["x"], table["y"], table["on"] = events.t, events.x, events.y, events.p
    theirs = tmp_path / "theirs.raw"
    encoder.events_to_file([table], theirs, (640, 480), version=version)
    assert open_recording(theirs).read_all().digest() == events.digest()
    ours = tmp_path / ("ours.evt2.raw" if version == "evt2" else "ours.raw")
    write_recording(ours, [events], events.sensor)
    read = np.concatenate(list(faery.events_stream_from_file(ours)))
    assert np.array_equal(read, table)


@pytest.mark.parametrize(
    ("name", "num_events", "first_us", "last_us", "num_brighter"),
    [
        ("eventgpt-sample1.npy", 132_268, 0, 49_595, 64_714),
        ("dsec-interlaken-000089.npy", 120_836, 51_836_949_776, 51_836_999_775, 71_873),
        ("dsec-interlaken-000099.npy", 135_853, 51_837_449_776, 51_837_499_775, 81_519),
        ("faery_evt2.raw", 521_252, 913_716_224, 913_812_095, 185_861),
        ("tonic_sample_ncars.dat", 2009, 0, 99_952, 1350),
        ("tonic_sample.aedat4", 111_954, 1_605_537_493_718_345, 1_605_537_494_308_262, 55_023),
    ],
)
def test_samples_give_the_counts_and_times_they_hold(
    name, num_events, first_us, last_us, num_brighter
):
    path = sample(name)
    stated = None if name.endswith("aedat4") else SENSOR
    with open_recording(path, sensor=stated) as recording:
        events = recording.read_all()
        assert (recording.first_us, events.t[-1]) == (first_us, last_us)
    assert (len(events), np.count_nonzero(events.p)) == (num_events, num_brighter)


def test_the_evt2_sample_equals_a_literal_parse():
    data = sample("faery_evt2.raw").read_bytes()
    body = data[data.rindex(b"\n", 0, data.index(b"% evt 2.0") + 12) + 1 :]
    high, rows = None, []
    for (word,) in struct.iter_unpack("<I", body[: len(body) // 4 * 4]):
        kind = word >> 28
        if kind == 8:
            high = word & 0xFFFFFFF
        elif kind in (0, 1) and high is not None:
            rows.append((word >> 11 & 0x7FF, word & 0x7FF, high << 6 | word >> 22 & 0x3F, kind))
    x, y, t, p = np.array(rows).T
    literal = Events.checked(x, y, t, p, SENSOR)
    assert (
        open_recording(sample("faery_evt2.raw"), sensor=SENSOR).read_all().digest()
        == literal.digest()
    )


def test_the_dat_sample_equals_a_literal_parse():
    data = sample("tonic_sample_ncars.dat").read_bytes()
    body = data[data.rindex(b"% Date") :]
    body = body[body.index(b"\n") + 3 :]
    rows = [(w & 0x3FFF, w >> 14 & 0x3FFF, t, w >> 28) for t, w in struct.iter_unpack("<II", body)]
    x, y, t, p = np.array(rows).T
    literal = Events.checked(x, y, t, p, SENSOR)
    read = open_recording(sample("tonic_sample_ncars.dat"), sensor=SENSOR).read_all()
    assert read.digest() == literal.digest()


@pytest.mark.parametrize(
    "name", ["eventgpt-sample1.npy", "dsec-interlaken-000089.npy", "dsec-interlaken-000099.npy"]
)
def test_a_pickled_sample_equals_numpys_own_reading(name):
    path = sample(name)
    theirs = np.load(path, allow_pickle=True).item()
    x, y, t, p = (theirs[key] for key in "xytp")
    literal = Events.checked(x, y, t, p, SENSOR)
    assert open_recording(path, sensor=SENSOR).read_all().digest() == literal.digest()


def test_the_aedat4_sample_equals_faerys_reading():
    faery = pytest.importorskip("faery")
    path = sample("tonic_sample.aedat4")
    theirs = np.concatenate(list(faery.events_stream_from_file(path)))
    x, y, t, p = (theirs[key] for key in ("x", "y", "t", "on"))
    literal = Events.checked(x, y, t, p, SensorSize(320, 240))
    assert open_recording(path).read_all().digest() == literal.digest()


def test_every_suffix_that_is_written_is_one_that_is_read():
    assert {f".{suffix.rpartition('.')[2]}" for suffix in WRITERS} | {".npy"} == set(SUFFIXES)
    for suffix in SUFFIXES:
        assert (reader_of(b"", suffix) is not None) == (suffix in (".raw", ".dat", ".csv"))


def test_files_that_are_no_recording_say_so(tmp_path):
    with pytest.raises(MediaError, match="check the path"):
        open_recording(tmp_path / "absent.raw")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(MediaError, match=r"give one ending in \.h5, .* \.aedat4 or \.csv"):
        open_recording(tmp_path / "notes.txt")
    (tmp_path / "evt21.raw").write_bytes(b"% evt 2.1\n")
    with pytest.raises(MediaError, match="EVT2 and EVT3 are read"):
        open_recording(tmp_path / "evt21.raw")
    with pytest.raises(MediaError, match="no suffix of a format"):
        write_recording(tmp_path / "out.mp4", [], SENSOR)


def test_what_a_format_cannot_hold_is_refused_and_leaves_no_file(tmp_path):
    wide = random_events(10, sensor=SensorSize(4096, 16))
    paused = random_events(10, pauses_us=(2**34,))
    for suffix in (".raw", ".evt2.raw"):
        with pytest.raises(MediaError, match=r"write \.npz"):
            write_recording(tmp_path / f"wide{suffix}", [wide], wide.sensor)
    for suffix in (".evt2.raw", ".dat", ".h5"):
        with pytest.raises(MediaError, match=r"write \.npz"):
            write_recording(tmp_path / f"paused{suffix}", [paused], SENSOR)
    assert list(tmp_path.iterdir()) == []
