"""How different two windows of events are, as a share."""

import numpy as np
import pytest

from headstart.media.change import Activity, EventPicture
from headstart.media.events import Events, SensorSize

SENSOR = SensorSize(80, 60)


def window(rng, columns, num_events=5000, brighter=0.5):
    return Events.checked(
        rng.integers(*columns, num_events),
        rng.integers(0, SENSOR.height, num_events),
        np.sort(rng.integers(0, 50_000, num_events)),
        rng.random(num_events) < brighter,
        SENSOR,
    )


def test_the_same_is_no_change_and_the_other_half_is_all(rng):
    left = EventPicture.of(window(rng, (0, 40)))
    assert left.change_from(left) == 0
    assert left.change_from(EventPicture.of(window(rng, (0, 40)))) < 0.1
    assert left.change_from(EventPicture.of(window(rng, (40, 80)))) == pytest.approx(1)


def test_more_of_the_same_is_little_change_and_the_other_polarity_is_much(rng):
    few = EventPicture.of(window(rng, (0, 80), 4000))
    assert few.change_from(EventPicture.of(window(rng, (0, 80), 16000))) < 0.1
    darker = EventPicture.of(window(rng, (0, 80), brighter=0.0))
    assert few.change_from(darker) == pytest.approx(0.5, abs=0.1)


def test_it_is_symmetric_and_grows_with_what_moved(rng):
    start = EventPicture.of(window(rng, (0, 40)))
    moved = [EventPicture.of(window(rng, (10 * k, 40 + 10 * k))) for k in range(5)]
    changes = [start.change_from(one) for one in moved]
    assert changes == sorted(changes)
    assert changes[2] == pytest.approx(moved[2].change_from(start))


def test_no_events_are_a_picture_too(rng):
    empty = EventPicture.of(Events.empty(SENSOR))
    assert empty.change_from(empty) == 0
    assert 0 <= empty.change_from(EventPicture.of(window(rng, (0, 80)))) <= 1


def stretch(rng, num_events, columns=(0, 80)):
    """A tenth of a second."""
    return window(rng, columns, num_events)


def test_noise_is_no_activity_and_what_moves_in_one_place_is(rng):
    activity = Activity()
    noise = [activity.of(stretch(rng, 2000), 0.1) for _ in range(100)]
    assert max(noise) < 0.01
    mover = Events.concatenate([stretch(rng, 2000), stretch(rng, 400, (40, 44)).shifted(50_000)])
    # 400 events on 4800 pixels, less what noise is allowed to add.
    assert 0.04 < activity.of(mover, 0.1) < 400 / 4800


def test_what_goes_on_becomes_usual_and_a_fall_is_followed_sooner_than_a_rise(rng):
    activity = Activity()
    for _ in range(10):
        activity.of(stretch(rng, 1000), 0.1)
    rising = [activity.of(stretch(rng, 8000), 0.1) for _ in range(200)]
    assert rising[10] > 0.5 * rising[0] > 0.5
    assert rising[-1] < 0.01
    falling = [activity.of(stretch(rng, 1000), 0.1) for _ in range(30)]
    assert max(falling) == 0
    assert activity.of(stretch(rng, 8000), 0.1) > 0.8 * rising[0]


def test_short_pieces_count_as_much_as_one_long_one(rng):
    quiet, busy = stretch(rng, 1000), stretch(rng, 8000)
    long, short = Activity(), Activity()
    for _ in range(5):
        long.of(quiet, 0.1)
        short.of(quiet, 0.1)
    thirds = [busy[:2500], busy[2500:5000], busy[5000:]]
    assert sum(short.of(piece, 0.1 / 3) for piece in thirds) == pytest.approx(long.of(busy, 0.1))


def test_a_camera_that_begins_in_motion_is_compared_with_its_own_motion(rng):
    activity = Activity()
    assert activity.of(stretch(rng, 8000), 0.1) == 0
    assert activity.of(stretch(rng, 8000), 0.1) < 0.01
