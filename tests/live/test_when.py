"""Which windows are asked: noise asks nothing, what moves does, and nothing is forgotten."""

import time

import numpy as np
import pytest

from headstart.errors import LiveError
from headstart.live.when import NUM_APART, Always, WhenChanged
from headstart.media.events import Events, SensorSize

SENSOR = SensorSize(346, 260)
FRAME_US, WINDOW_US = 50_000, 2_000_000
NOISE_HZ, MOTION_HZ = 40_000, 400_000


class Camera:
    """Frames at 20 Hz. Noise is everywhere; what moves is in a box of the picture."""

    def __init__(self, rng, when):
        self.rng, self.when, self.time_us, self.num_asked = rng, when, 0, 0

    def frame(self, moving=None, noise_hz=NOISE_HZ):
        noise = self._events(noise_hz, (0, 0, SENSOR.width, SENSOR.height))
        pieces = [noise] if moving is None else [noise, self._events(MOTION_HZ, moving)]
        x, y, p = (np.concatenate(column) for column in zip(*pieces, strict=True))
        times = np.sort(self.rng.integers(self.time_us, self.time_us + FRAME_US, len(x)))
        self.time_us += FRAME_US
        self.when.note(self.time_us, Events.checked(x, y, times, p, SENSOR))

    def _events(self, rate_hz, box):
        left, top, right, bottom = box
        number = self.rng.poisson(rate_hz * FRAME_US / 1e6)
        return (
            self.rng.integers(left, right, number),
            self.rng.integers(top, bottom, number),
            self.rng.integers(0, 2, number),
        )

    def window(self, moving=None, noise_hz=NOISE_HZ):
        """One window; asked at its end if it is wanted."""
        start_us = self.time_us
        for _ in range(WINDOW_US // FRAME_US):
            self.frame(moving, noise_hz)
        # The frame at a window's end belongs to the next.
        stop_us = self.time_us + 1
        if not self.when.is_wanted(start_us, stop_us):
            return False
        self.when.asked(start_us, stop_us)
        return True


PERSON = (100, 100, 130, 180)
EVERYTHING = (0, 0, SENSOR.width, SENSOR.height)


@pytest.fixture
def camera(rng):
    return Camera(rng, WhenChanged())


def test_always_is_every_window(rng):
    camera = Camera(rng, Always())
    assert all(camera.window() for _ in range(3))
    assert camera.when.urgency == 1.0


def test_the_first_window_is_asked_and_noise_alone_asks_no_other(camera):
    assert [camera.window() for _ in range(60)] == [True] + [False] * 59


def test_louder_noise_is_no_scene_once_it_is_usual(camera):
    asked = [camera.window(noise_hz=4 * NOISE_HZ) for _ in range(20)]
    assert asked == [True] + [False] * 19


def test_one_person_who_walks_through_the_picture_is_asked_about(camera):
    for _ in range(5):
        camera.window()
    assert camera.window(moving=PERSON)
    # Who was there at the end of that window is gone in the next: that is a change as well.
    assert camera.window()
    assert not camera.window()


def test_a_start_is_asked_at_once_and_again_after_a_stop(camera):
    for _ in range(2):
        for _ in range(3):
            camera.window()
        assert not camera.window()  # it stands
        assert camera.window(moving=EVERYTHING)
        for _ in range(8):
            camera.window(moving=EVERYTHING)


def test_it_turns_to_wanted_as_soon_as_it_is_known_and_not_back(camera):
    camera.window()
    start_us, stop_us = camera.time_us, camera.time_us + WINDOW_US
    known = []
    for number in range(WINDOW_US // FRAME_US - 1):
        camera.frame(moving=PERSON if 10 <= number < 16 else None)
        known.append(camera.when.is_wanted(start_us, stop_us))
    assert known[9] is False
    assert known[16] is True
    assert known == sorted(known)


def test_what_came_after_a_window_ended_is_the_next_ones(camera):
    # The frame that ends a window comes before the question: its events must not be lost.
    camera.window()
    start_us, stop_us = camera.time_us, camera.time_us + FRAME_US
    for _ in range(8):
        camera.frame(moving=PERSON)
    assert not camera.when.is_wanted(start_us, stop_us)
    camera.when.asked(start_us, stop_us)
    assert camera.when.is_wanted(stop_us, stop_us + WINDOW_US)


def test_a_change_long_before_a_window_is_asked_is_remembered(camera):
    camera.window()
    for _ in range(6):
        camera.frame(moving=PERSON)
    for _ in range(2 * NUM_APART):
        camera.frame()
    assert camera.when.is_wanted(camera.time_us, camera.time_us + WINDOW_US)
    assert len(camera.when._latest) <= NUM_APART


def test_at_least_every_so_many_seconds(rng):
    camera = Camera(rng, WhenChanged(floor_s=6.0))
    assert [camera.window() for _ in range(7)] == [True, False, False, True, False, False, True]


def test_without_events_every_window_is_asked():
    when = WhenChanged()
    for start_us in range(0, 5 * WINDOW_US, WINDOW_US):
        for time_us in range(start_us, start_us + WINDOW_US, FRAME_US):
            when.note(time_us, None)
        assert when.is_wanted(start_us, start_us + WINDOW_US)
        assert when.urgency == 1.0
        when.asked(start_us, start_us + WINDOW_US)


def test_events_that_are_missing_for_a_while_may_hide_a_change(camera):
    camera.window()
    camera.time_us += FRAME_US
    camera.when.note(camera.time_us, None)
    assert camera.when.is_wanted(camera.time_us, camera.time_us + WINDOW_US)


def test_a_frame_that_comes_twice_or_late_changes_nothing(camera, rng):
    camera.window()
    crowd = Events.checked(
        rng.integers(0, 346, 50_000), rng.integers(0, 260, 50_000), np.zeros(50_000, np.int64),
        rng.integers(0, 2, 50_000), SENSOR,
    )  # fmt: skip
    camera.when.note(camera.time_us, crowd)
    camera.when.note(camera.time_us - FRAME_US, crowd)
    assert not camera.window()


def test_urgency_grows_with_what_has_changed_and_falls_when_it_is_asked(camera):
    camera.window()
    camera.window()
    quiet = camera.when.urgency
    camera.frame(moving=PERSON)
    camera.frame(moving=PERSON)
    some = camera.when.urgency
    for _ in range(6):
        camera.frame(moving=EVERYTHING)
    much = camera.when.urgency
    assert 0 <= quiet < some < much < 1
    camera.when.asked(0, camera.time_us + WINDOW_US)
    assert camera.when.urgency == 0


def test_a_lower_threshold_asks_no_later(rng):
    first = []
    for threshold in (0.05, 0.2, 1.0):
        camera = Camera(np.random.default_rng(3), WhenChanged(threshold=threshold))
        camera.window()
        start_us, number = camera.time_us, 0
        while not camera.when.is_wanted(start_us, camera.time_us + 1):
            camera.frame(moving=PERSON)
            number += 1
        first.append(number)
    assert first == sorted(first)
    assert first[0] < first[-1]


def test_a_frame_rate_matters_little(rng):
    # The same events, whether they come in twenty pieces a second or in a hundred.
    asked = {}
    for split in (1, 5):
        camera = Camera(np.random.default_rng(5), WhenChanged())
        note = camera.when.note

        def in_pieces(time_us, events, split=split, note=note):
            for number in range(split):
                start_us = time_us - FRAME_US + number * FRAME_US // split
                stop_us = start_us + FRAME_US // split
                note(stop_us, events.between(start_us, stop_us))

        camera.when.note = in_pieces
        moving = [None] * 4 + [PERSON] + [None] * 4 + [PERSON, PERSON] + [None]
        asked[split] = [camera.window(moving=box) for box in moving]
    assert asked[1] == asked[5]
    assert sum(asked[1]) == 6


@pytest.mark.parametrize("wrong", [{"floor_s": 0.0}, {"floor_s": -1.0}, {"threshold": 0.0}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(LiveError, match="above 0"):
        WhenChanged(**wrong)


def test_a_frame_of_a_moving_camera_takes_a_few_milliseconds(rng):
    # A sensor of this size reports about this much while the camera turns.
    x, y = rng.integers(0, 346, 100_000), rng.integers(0, 260, 100_000)
    p = rng.integers(0, 2, 100_000)
    times = np.sort(rng.integers(0, FRAME_US, 100_000))
    events = Events.checked(x, y, times, p, SENSOR)
    when, spent = WhenChanged(), []
    for number in range(30):
        started = time.thread_time()
        when.note(number * FRAME_US, events)
        when.is_wanted(0, WINDOW_US)
        spent.append(time.thread_time() - started)
    assert sorted(spent)[len(spent) // 2] < 0.02
