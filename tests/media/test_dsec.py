"""DSEC's layout as others write it, and damaged."""

import multiprocessing

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart_events.readers.dsec import RectifyMap
from headstart_events.readers.hdf5_client import CLIENT, Hdf5Client
from headstart_events.readers.opening import open_recording
from headstart_events.writers.writing import write_recording
from tests.media.synthetic import SENSOR, random_events

h5py = pytest.importorskip("h5py")
OFFSET_US = 51_836_949_776


def write_layout(path, events, ms_to_idx=True, **packing):
    t = events.t - OFFSET_US
    with h5py.File(path, "w") as file:
        for name, values in (("x", events.x), ("y", events.y), ("t", t), ("p", events.p)):
            dtype = {"t": "u4", "p": "u1"}.get(name, "u2")
            file.create_dataset(f"events/{name}", data=values.astype(dtype), **packing)
        file["t_offset"] = np.int64(OFFSET_US)
        if ms_to_idx:
            edges = np.arange(int(t[-1]) // 1000 + 1) * 1000
            file["ms_to_idx"] = np.searchsorted(t, edges).astype(np.uint64)
    return path


def packings():
    hdf5plugin = pytest.importorskip("hdf5plugin")
    return [
        {},
        {"chunks": (1000,)},
        {"chunks": (1000,), "compression": "gzip"},
        {"chunks": (1000,), "compression": "gzip", "shuffle": True},
        {"chunks": (1000,), **hdf5plugin.Blosc(cname="zstd")},
        {"chunks": (1000,), **hdf5plugin.Blosc(cname="blosclz")},
    ]


@pytest.fixture(scope="module")
def events():
    return random_events(200_000, start_us=OFFSET_US, duration_us=2_000_000)


@pytest.mark.parametrize("ms_to_idx", [True, False])
@pytest.mark.parametrize("packing", packings(), ids=str)
def test_a_window_is_exact_however_it_is_packed(tmp_path, events, packing, ms_to_idx):
    path = write_layout(tmp_path / "events.h5", events, ms_to_idx, **packing)
    with open_recording(path, sensor=SENSOR) as recording:
        assert recording.num_events == len(events)
        assert recording.first_us == events.t[0]
        for start in (0, 777_777, 1_999_999, 3_000_000):
            window = recording.read(OFFSET_US + start, OFFSET_US + start + 50_000)
            expected = events.between(OFFSET_US + start, OFFSET_US + start + 50_000)
            assert window.digest() == expected.digest()
        assert recording.read_all().digest() == events.digest()


@pytest.mark.parametrize("lie", [0, 5, 2**63, -1])
def test_an_index_that_lies_costs_time_and_no_event(tmp_path, events, lie):
    path = write_layout(tmp_path / "events.h5", events)
    with h5py.File(path, "a") as file:
        true = file["ms_to_idx"][:]
        del file["ms_to_idx"]
        file["ms_to_idx"] = np.full(len(true), lie).astype(np.uint64)
    with open_recording(path, sensor=SENSOR) as recording:
        window = recording.read(OFFSET_US + 500_000, OFFSET_US + 550_000)
    assert window.digest() == events.between(OFFSET_US + 500_000, OFFSET_US + 550_000).digest()


def test_a_window_of_a_long_recording_reads_only_its_own_chunks(tmp_path, events, monkeypatch):
    path = tmp_path / "events.h5"
    write_recording(path, [events], SENSOR)
    num_read = 0
    original = CLIENT.read

    def counting(path, column, start, stop):
        nonlocal num_read
        num_read += stop - start
        return original(path, column, start, stop)

    with open_recording(path) as recording:
        monkeypatch.setattr(CLIENT, "read", counting)
        window = recording.read(OFFSET_US + 1_000_000, OFFSET_US + 1_050_000)
    assert len(window) > 4000
    assert num_read < 6 * len(window)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: f.__delitem__("events/x"), "no events/x"),
        (lambda f: f.__delitem__("events"), "no events"),
        (lambda f: _replace(f, "events/x", np.zeros(3, "u2")), "differ in length"),
        (lambda f: _replace(f, "events/x", np.zeros((3, 3), "u2")), "one column"),
        (lambda f: _replace(f, "events/x", np.zeros(3, "f4")), "dataset of numbers"),
        (lambda f: _replace(f, "t_offset", np.zeros(3)), "t_offset"),
        (lambda f: _replace(f, "t_offset", np.int64(2**62)), "no time"),
        (lambda f: _replace(f, "events/t", h5py.ExternalLink("/etc/passwd", "/t")), "link"),
        (lambda f: _replace(f, "events/t", h5py.SoftLink("/events/x")), "link"),
    ],
)
def test_a_layout_that_is_not_dsecs_is_refused_with_a_reason(tmp_path, events, spoil, says):
    path = write_layout(tmp_path / "events.h5", events)
    with h5py.File(path, "a") as file:
        spoil(file)
    with pytest.raises(MediaError, match=says):
        open_recording(path, sensor=SENSOR)


def _replace(file, name, value):
    del file[name]
    file[name] = value


@pytest.mark.parametrize("packing", [{"compression": "lzf"}, {"fletcher32": True}])
def test_filters_that_cannot_be_bounded_are_refused(tmp_path, events, packing):
    path = write_layout(tmp_path / "events.h5", events, **packing)
    with pytest.raises(MediaError, match="h5repack"):
        open_recording(path, sensor=SENSOR)


def test_chunks_that_were_never_written_are_not_zeros(tmp_path):
    path = tmp_path / "events.h5"
    with h5py.File(path, "w") as file:
        for name in "xytp":
            file.create_dataset(f"events/{name}", shape=(10**8,), chunks=(1000,), dtype="u2")
    with pytest.raises(MediaError, match="lacks some of its chunks"):
        open_recording(path, sensor=SENSOR)


@pytest.mark.parametrize("packing", [{}, packings()[-1] | {"chunks": (100, 100, 2)}], ids=str)
def test_rectifying_moves_events_and_drops_those_that_leave_the_sensor(tmp_path, packing):
    events = random_events(5000)
    height, width = SENSOR.height, SENSOR.width
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float32)
    with h5py.File(tmp_path / "rectify_map.h5", "w") as file:
        file.create_dataset("rectify_map", data=grid + np.float32(10.4), **packing)
    moved = RectifyMap.read(tmp_path / "rectify_map.h5").apply(events)
    stays = (events.x + 10 < width) & (events.y + 10 < height)
    assert moved.x.tolist() == (events.x[stays] + 10).tolist()
    assert moved.y.tolist() == (events.y[stays] + 10).tolist()
    assert moved.t.tolist() == events.t[stays].tolist()
    with pytest.raises(MediaError, match="same sensor"):
        RectifyMap(grid[:10]).apply(events)
    with pytest.raises(MediaError, match="check the path"):
        RectifyMap.read(tmp_path / "absent.h5")
    write_recording(tmp_path / "events.h5", [events], SENSOR)
    with pytest.raises(MediaError, match="rectify_map"):
        RectifyMap.read(tmp_path / "events.h5")


def test_a_helper_that_dies_over_a_file_refuses_it_and_serves_the_next(tmp_path, events):
    good = write_layout(tmp_path / "good.h5", events)
    client = Hdf5Client()
    assert client.describe(good)["num_events"] == len(events)
    client._process.kill()
    with pytest.raises(MediaError, match="broke down"):
        client.describe(good)
    assert client.describe(good)["num_events"] == len(events)
    client.stop()
    assert client.describe(good)["num_events"] == len(events)
    client.stop()


def test_a_recording_stays_readable_after_the_helper_was_lost(tmp_path, events):
    path = write_layout(tmp_path / "events.h5", events)
    with open_recording(path, sensor=SENSOR) as recording:
        before = recording.read(OFFSET_US, OFFSET_US + 50_000)
        CLIENT.stop()
        assert recording.read(OFFSET_US, OFFSET_US + 50_000).digest() == before.digest()


def test_a_file_written_anew_is_read_anew(tmp_path, events):
    path = write_layout(tmp_path / "events.h5", events)
    assert open_recording(path, sensor=SENSOR).num_events == len(events)
    write_layout(path, events[:1000])
    assert open_recording(path, sensor=SENSOR).read_all().digest() == events[:1000].digest()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_gets_a_helper_of_its_own(tmp_path, events):
    path = write_layout(tmp_path / "events.h5", events)
    before = open_recording(path, sensor=SENSOR).read_all().digest()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def read():
        answers.put(open_recording(path, sensor=SENSOR).read_all().digest())

    children = [context.Process(target=read) for _ in range(3)]
    for child in children:
        child.start()
    assert open_recording(path, sensor=SENSOR).read_all().digest() == before
    for child in children:
        child.join()
    assert [answers.get() for _ in children] == [before] * 3
