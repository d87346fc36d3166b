import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from tests.media.synthetic import SENSOR, random_events


def columns(**changed):
    whole = {
        "x": np.array([1, 2, 3]),
        "y": np.array([4, 5, 6]),
        "t": np.array([10, 10, 30]),
        "p": np.array([0, 1, 1]),
    }
    return {**whole, **{name: np.asarray(value) for name, value in changed.items()}}


def test_checked_events_have_the_canonical_types():
    events = Events.checked(**columns(), sensor=SENSOR)
    assert [a.dtype for a in (events.x, events.y, events.t, events.p)] == [
        np.uint16,
        np.uint16,
        np.int64,
        np.bool_,
    ]
    assert len(events) == 3
    assert events.duration_us == 20


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"x": [1, 2]}, "differ in length"),
        ({"x": [1, 2, 640]}, "sensor is 640x480"),
        ({"y": [1, 2, 480]}, "sensor is 640x480"),
        ({"x": [-1, 2, 3]}, "sensor size"),
        ({"p": [-1, 1, 1]}, "polarity is 0"),
        ({"t": [10, 9, 30]}, "times go back from 10 to 9 us at event 1"),
        ({"t": [0, 1, 2**63 - 1]}, "times are microseconds"),
        ({"t": [0.0, 1.0, 2.0]}, "one integer per event"),
        ({"t": [[0], [1], [2]]}, "one integer per event"),
    ],
)
def test_impossible_columns_are_refused_with_a_reason(changed, says):
    with pytest.raises(MediaError, match=says):
        Events.checked(**columns(**changed), sensor=SENSOR)


def test_large_unsigned_values_do_not_wrap_into_range():
    with pytest.raises(MediaError):
        Events.checked(**columns(x=np.array([1, 2, 65536 + 3])), sensor=SENSOR)
    with pytest.raises(MediaError):
        Events.checked(**columns(t=np.array([0, 1, 2**64 - 1], np.uint64)), sensor=SENSOR)


def test_sorting_on_request_keeps_arrival_order_among_equal_times():
    shuffled = columns(x=[1, 2, 3], t=[30, 10, 10])
    events = Events.checked(**shuffled, sensor=SENSOR, sort=True)
    assert events.t.tolist() == [10, 10, 30]
    assert events.x.tolist() == [2, 3, 1]


def test_a_window_is_half_open_and_shares_memory():
    events = Events.checked(**columns(), sensor=SENSOR)
    window = events.between(10, 30)
    assert window.t.tolist() == [10, 10]
    assert np.shares_memory(window.t, events.t)
    assert len(events.between(30, 10)) == 0


def test_the_digest_is_of_the_content_and_the_sensor():
    events = random_events(1000)
    assert events.digest() == random_events(1000).digest()
    assert events.digest() != random_events(1000, seed=1).digest()
    assert events.digest() != events[:-1].digest()
    larger = Events(events.x, events.y, events.t, events.p, SensorSize(1280, 720))
    assert events.digest() != larger.digest()
    assert events[::1].digest() == Events.concatenate([events[:300], events[300:]]).digest()
    strided = Events(
        *(np.repeat(c, 2)[::2] for c in (events.x, events.y, events.t, events.p)), SENSOR
    )
    assert strided.digest() == events.digest()


def test_pieces_join_only_in_order_and_of_one_sensor():
    events = random_events(100)
    with pytest.raises(MediaError, match="in order"):
        Events.concatenate([events[50:], events[:50]])
    with pytest.raises(MediaError, match="one sensor"):
        Events.concatenate([events, random_events(5, sensor=SensorSize(1280, 720))])


def test_shifting_moves_the_clock_only():
    events = random_events(100)
    assert events.shifted(5).shifted(-5).digest() == events.digest()
    with pytest.raises(MediaError):
        events.shifted(2**62)


def test_no_events_are_still_events():
    nothing = Events.empty(SENSOR)
    assert len(nothing) == 0
    assert nothing.duration_us == 0
    assert len(nothing.between(0, 10)) == 0


@pytest.mark.parametrize(
    "text", ["640", "640x", "x480", "640x480x3", "-1x5", "0x0", "1e3x5", "9" * 9 + "x1"]
)
def test_a_sensor_size_that_is_none_is_refused(text):
    with pytest.raises(MediaError):
        SensorSize.parse(text)


def test_a_sensor_size_reads_as_it_is_written():
    assert SensorSize.parse("640x480") == SENSOR
    assert str(SENSOR) == "640x480"
