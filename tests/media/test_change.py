"""How different two windows of events are, as a share."""

import numpy as np
import pytest

from headstart.media.change import EventPicture
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
