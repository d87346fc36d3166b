"""Events beside frames: recorded, simulated, and from a camera that is plugged in."""

import queue
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from headstart.errors import MediaError, SourceError
from headstart.live.sources.folder import video_file
from headstart.live.sources.source import Arrival, SourceCounts
from headstart.media.events import Events, SensorSize
from headstart.media.video import Video
from headstart_events.live import event_camera as event_cameras
from headstart_events.live.event_camera import LiveEvents, event_camera
from headstart_events.live.events_beside import (
    SIMULATED_SIDE,
    SimulatedEvents,
    simulated,
    with_events,
)
from headstart_events.readers.opening import open_recording
from headstart_events.writers.writing import write_recording
from rig.footage import nothing_left, numbered
from rig.waiting import wait_until

SENSOR = SensorSize(32, 24)


def every(step_us, start_us, stop_us):
    """An event every so often, of pixels in turn."""
    t = np.arange(start_us, stop_us, step_us, dtype=np.int64)
    x = (np.arange(len(t)) % SENSOR.width).astype(np.uint16)
    return Events(x, np.zeros_like(x), t, np.ones(len(t), np.bool_), SENSOR)


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """Twenty frames, ten a second."""
    path = tmp_path_factory.mktemp("footage") / "twenty.mp4"
    Video.from_frames(numbered(20), fps=10).write(path, fps=10)
    return path


@pytest.mark.parametrize("offset_us", [0, -5_000_000, 123])
@pytest.mark.parametrize("suffix", [".npz", ".raw", ".csv"])
def test_a_recording_beside_gives_each_frame_the_events_since_the_last(
    tmp_path, footage, offset_us, suffix
):
    path = tmp_path / f"events{suffix}"
    recorded = every(700, 0, 2_500_000).shifted(-min(0, offset_us))
    write_recording(path, [recorded], SENSOR)
    beside = with_events(video_file(footage, speed=100), path, offset_us=offset_us, sensor=SENSOR)
    with nothing_left():
        arrivals = list(beside.arrivals())
    with open_recording(path, sensor=SENSOR) as recording:
        truth = recording.read_all().shifted(offset_us)
    assert len(arrivals[0].events) == 0
    for before, after in pairwise(arrivals):
        expected = truth.between(before.time_us, after.time_us)
        assert len(expected) > 100
        assert after.events.digest() == expected.digest()


def test_frames_that_were_dropped_take_no_events_with_them(tmp_path, footage):
    path = tmp_path / "events.npz"
    write_recording(path, [every(700, 0, 2_500_000)], SENSOR)
    source = with_events(video_file(footage, speed=10), path)
    arrivals = []
    for arrival in source.arrivals():
        if not arrivals:
            time.sleep(0.5)  # plays: a reader that is late
        arrivals.append(arrival)
    assert source.counts.dropped
    together = Events.concatenate([arrival.events for arrival in arrivals])
    expected = every(700, 0, 2_500_000).between(arrivals[0].time_us, arrivals[-1].time_us)
    assert together.digest() == expected.digest()


def test_a_recording_that_ends_first_leaves_frames_without_events(tmp_path, footage):
    path = tmp_path / "events.npz"
    write_recording(path, [every(1000, 0, 500_000)], SENSOR)
    arrivals = list(with_events(video_file(footage, speed=100), path).arrivals())
    assert len(arrivals) == 20
    assert [len(arrival.events) for arrival in arrivals[6:]] == [0] * 14


def test_a_recording_that_cannot_be_read_is_said_at_once(tmp_path, footage):
    with pytest.raises(MediaError, match="check the path"):
        with_events(video_file(footage), tmp_path / "nothing.raw")


def moving_video(path, height=480, width=640):
    """A white block that stands for 10 frames and then moves for 10."""
    frames = np.full((20, height, width, 3), 40, np.uint8)
    for number, frame in enumerate(frames):
        left = 100 + 20 * max(0, number - 9)
        frame[200:280, left : left + 80] = 220
    Video.from_frames(frames, fps=10).write(path, fps=10)
    return path


def test_simulated_events_say_when_something_moves(tmp_path):
    source = simulated(video_file(moving_video(tmp_path / "moving.mp4"), speed=10))
    with nothing_left():
        arrivals = list(source.arrivals())
    counts = [len(arrival.events) for arrival in arrivals]
    assert sum(counts[:10]) < 50
    assert min(counts[11:]) > 50
    for before, after in pairwise(arrivals[10:]):
        assert before.time_us <= after.events.t[0]
        assert after.events.t[-1] <= after.time_us
    assert max(arrivals[0].events.sensor.width, arrivals[0].events.sensor.height) <= SIMULATED_SIDE


def test_simulating_keeps_up_with_a_large_camera():
    random = np.random.default_rng(3)
    frames = random.integers(0, 255, (2, 1080, 1920, 3), dtype=np.uint8)

    class Noise:
        name, counts = "noise", SourceCounts()

        def arrivals(self):
            for number in range(20):
                yield Arrival(frames[number % 2], number * 40_000)

        def close(self):
            pass

    start_s = time.thread_time()
    assert len(list(SimulatedEvents(Noise()).arrivals())) == 20
    assert time.thread_time() - start_s < 20 * 0.040  # of processor time, at 25 frames a second


class TwoCameras:
    """Frames and events that come in the order that a test says: a `Source`, and its packets."""

    name, counts = "two cameras", SourceCounts()

    def __init__(self, script):
        """``script``: for each frame its time, and what the event camera does before it."""
        self._script = script
        self._queue = queue.Queue()
        self._is_closed = False

    def arrivals(self):
        for time_us, before in self._script:
            if self._is_closed:
                return
            for one in before:
                self._queue.put(one)
            self._queue.join()
            yield Arrival(numbered(1)[0], time_us)

    def close(self):
        self._is_closed = True

    def packets(self, stopped):
        while not stopped.is_set():
            try:
                one = self._queue.get(timeout=0.02)
            except queue.Empty:
                continue
            try:
                if isinstance(one, Exception):
                    raise one
                yield one  # it has been taken once the next is asked for
            finally:
                self._queue.task_done()


def frames_every_100_ms(recorded, clock_us, count=20):
    """Packets of 10 ms before each frame, on a clock of the event camera's own."""
    return [
        (
            number * 100_000,
            [
                recorded.between(at_us, at_us + 10_000).shifted(clock_us)
                for at_us in range((number - 1) * 100_000, number * 100_000, 10_000)
            ],
        )
        for number in range(count)
    ]


def test_an_event_camera_is_brought_onto_the_clock_of_the_frames():
    recorded = every(500, -100_000, 10_000_000)
    cameras = TwoCameras(frames_every_100_ms(recorded, clock_us=77_000_000_000))
    with nothing_left():
        arrivals = list(LiveEvents(cameras, cameras.packets).arrivals())
    assert len(arrivals) == 20
    for before, after in pairwise(arrivals):
        assert before.time_us <= after.events.t[0]
        assert after.events.t[-1] < after.time_us
    # None twice and none left out.
    together = Events.concatenate([arrival.events for arrival in arrivals])
    assert set(np.diff(together.t)) == {500}
    assert len(together) == 20 * 200


def test_an_event_camera_whose_clock_jumps_is_brought_back():
    script = frames_every_100_ms(every(500, -100_000, 10_000_000), clock_us=0, count=10)
    for jump_us in (10**9, 0):
        script += [
            (time_us + 1_000_000 + (1_000_000 if jump_us == 0 else 0), pieces)
            for time_us, pieces in frames_every_100_ms(
                every(500, -100_000, 10_000_000), clock_us=jump_us, count=10
            )
        ]
    cameras = TwoCameras(script)
    arrivals = list(LiveEvents(cameras, cameras.packets).arrivals())
    for before, after in pairwise(arrivals):
        assert len(after.events) > 100
        assert before.time_us <= after.events.t[0]
        assert after.events.t[-1] < after.time_us


def test_an_event_camera_that_is_unplugged_leaves_the_frames(caplog):
    recorded = every(500, -100_000, 10_000_000)
    script = frames_every_100_ms(recorded, clock_us=0, count=6)
    script[3] = (script[3][0], [OSError("unplugged")])
    script[4] = (script[4][0], [])
    cameras = TwoCameras(script)
    has_events = []
    for arrival in LiveEvents(cameras, cameras.packets).arrivals():
        has_events.append(arrival.events is not None)
        if len(has_events) == 4:
            wait_until(lambda: "unplugged" in caplog.text)  # the fourth may have come before
    assert has_events[:3] == [True] * 3
    assert has_events[4:] == [False, True]  # and it is back


def test_events_that_wait_too_long_make_room(monkeypatch):
    monkeypatch.setattr(event_cameras, "MAX_EVENTS", 500)
    (_, pieces) = frames_every_100_ms(every(100, 0, 200_000), clock_us=0, count=2)[1]
    cameras = TwoCameras([(100_000, pieces)])
    (arrival,) = LiveEvents(cameras, cameras.packets).arrivals()
    assert 400 <= len(arrival.events) <= 500
    assert arrival.events.t[-1] == 99_999


def test_closing_ends_both_cameras():
    script = frames_every_100_ms(every(500, -100_000, 10_000_000), clock_us=0)
    cameras = TwoCameras(script)
    source = LiveEvents(cameras, cameras.packets)
    with nothing_left():
        for count, _ in enumerate(source.arrivals()):
            if count == 4:
                source.close()
    assert count == 4


def test_without_the_package_it_is_said_how_to_install_it(footage, monkeypatch):
    monkeypatch.setitem(sys.modules, "neuromorphic_drivers", None)
    with pytest.raises(SourceError, match=r"headstart\[camera\]"):
        event_camera(video_file(footage))


def test_without_a_device_it_is_said_what_to_do(footage):
    driver = pytest.importorskip("neuromorphic_drivers", reason="headstart[camera]")
    try:
        has_device = bool(driver.list_devices())
    except RuntimeError:
        has_device = False  # no USB at all
    if has_device:
        pytest.skip("an event camera is plugged in")
    with pytest.raises(SourceError, match="plug it in"):
        event_camera(video_file(footage))
    with pytest.raises((OSError, RuntimeError)):
        next(event_cameras._read_device(threading.Event()))
