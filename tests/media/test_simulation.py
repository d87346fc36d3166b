import tracemalloc

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart.media.video import stream_frames
from headstart_events.simulation import SensorModel, Simulator, respond, simulate
from tests.media.samples import sample

SMALL = SensorSize(32, 24)


def watch(model, lights, interval_us=10_000, sensor=SMALL):
    """Show each light to every pixel in turn."""
    simulator = Simulator(sensor, model)
    shape = (sensor.height, sensor.width)
    pieces = [
        simulator.see_light(index * interval_us, np.broadcast_to(np.float64(light), shape))
        for index, light in enumerate(lights)
    ]
    return Events.concatenate(pieces)


def moving_edge(num_frames=12, size=(24, 32)):
    for index in range(num_frames):
        frame = np.full((*size, 3), 40, dtype=np.uint8)
        frame[:, : 2 + 2 * index] = 200
        yield index * 10_000, frame


@pytest.mark.parametrize("brighter", [True, False])
def test_a_logarithmic_ramp_gives_the_predicted_events_at_the_predicted_times(brighter):
    # The logarithm moves by 1.05 over 40 ms; a threshold of 0.1 is passed every 0.1/1.05 of it.
    ramp = 50.0 * np.exp(np.linspace(0.0, 1.05, 5))
    events = watch(SensorModel.ideal(0.1), ramp if brighter else ramp[::-1])
    num_pixels = SMALL.width * SMALL.height
    assert len(events) == 10 * num_pixels
    assert np.all(events.p == brighter)
    times = np.unique(events.t)
    predicted = np.arange(1, 11) * 0.1 / 1.05 * 40_000
    assert np.abs(times - predicted).max() <= 1
    _, per_pixel = np.unique(events.y.astype(int) * 32 + events.x, return_counts=True)
    assert np.all(per_pixel == 10)


def test_several_events_fall_into_one_frame_interval_at_times_of_their_own():
    events = watch(SensorModel.ideal(0.2), [50.0, 50.0 * np.exp(1.01)], sensor=SensorSize(1, 1))
    assert events.t.tolist() == [int(10_000 * 0.2 * k / 1.01) for k in range(1, 6)]


def test_what_is_left_under_the_threshold_is_kept_for_later():
    steps = 50.0 * np.exp(np.arange(11) * 0.05)
    events = watch(SensorModel.ideal(0.2), steps, sensor=SensorSize(1, 1))
    assert len(events) == 2


def test_a_static_scene_without_noise_gives_none():
    assert len(watch(SensorModel.ideal(), [80.0] * 10)) == 0


def test_the_response_is_linear_in_the_dark_and_smoothly_logarithmic_above():
    light = np.array([0.0, 10.0, 20.0, 100.0])
    expected = [0.0, np.log(20) / 2, np.log(20), np.log(100)]
    assert respond(light, 20.0) == pytest.approx(expected)


def test_leak_events_come_at_their_rate_and_are_all_brighter():
    model = SensorModel(leak_rate_hz=2.0, shot_noise_rate_hz=0.0)
    sensor = SensorSize(100, 100)
    events = watch(model, [80.0] * 101, sensor=sensor)  # one second
    assert len(events) == pytest.approx(2.0 * 100 * 100, rel=0.03)
    assert np.all(events.p)
    per_tenth = np.histogram(events.t, bins=10, range=(0, 1_000_000))[0]
    assert per_tenth.min() > 0.8 * per_tenth.mean()


def test_shot_noise_comes_at_its_rate_of_both_polarities_and_more_in_the_dark():
    model = SensorModel(leak_rate_hz=0.0, shot_noise_rate_hz=5.0, refractory_us=0)
    sensor = SensorSize(100, 100)
    dark = watch(model, [0.0] * 101, sensor=sensor)
    light = watch(model, [255.0] * 101, sensor=sensor)
    assert len(dark) == pytest.approx(50_000, rel=0.03)
    assert len(light) == pytest.approx(12_500, rel=0.05)
    assert np.count_nonzero(dark.p) == pytest.approx(len(dark) / 2, rel=0.03)


def test_thresholds_differ_from_pixel_to_pixel_as_stated():
    model = SensorModel(
        threshold_spread=0.05, leak_rate_hz=0.0, shot_noise_rate_hz=0.0, refractory_us=0
    )
    sensor = SensorSize(100, 100)
    events = watch(model, 30.0 * np.exp(np.linspace(0, 2, 21)), sensor=sensor)
    _, per_pixel = np.unique(events.y.astype(int) * 100 + events.x, return_counts=True)
    thresholds = np.random.default_rng(0).normal(0.2, 0.05, (100, 100))
    expected = np.floor(2.0 / np.maximum(thresholds, 0.01)).sum()
    assert per_pixel.sum() == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize("refractory_us", [1, 777, 15_000])
def test_no_event_follows_another_at_its_pixel_within_the_refractory_time(refractory_us):
    model = SensorModel(refractory_us=refractory_us, shot_noise_rate_hz=300.0, threshold_on=0.05)
    lights = 60.0 * np.exp(np.sin(np.arange(30)))
    events = watch(model, lights)
    pixels = events.y.astype(int) * 32 + events.x
    order = np.lexsort((events.t, pixels))
    same = np.diff(pixels[order]) == 0
    assert np.diff(events.t[order])[same].min() >= refractory_us
    assert len(events) > 500


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    def digest(seed):
        return Events.concatenate(list(simulate(moving_edge(), SensorModel(seed=seed)))).digest()

    assert digest(3) == digest(3)
    assert digest(3) != digest(4)


def test_a_moving_edge_is_seen_where_it_moves():
    events = Events.concatenate(list(simulate(moving_edge(), SensorModel.ideal())))
    assert np.all(events.p)
    for index in range(11):
        inside = events.between(index * 10_000, (index + 1) * 10_000)
        assert set(inside.x.tolist()) == {2 + 2 * index, 3 + 2 * index}


def test_the_output_is_in_order_also_across_frames():
    pieces = list(simulate(moving_edge(), SensorModel(shot_noise_rate_hz=50.0)))
    whole = Events.concatenate(pieces)  # refuses pieces out of order
    checked = Events.checked(whole.x, whole.y, whole.t, whole.p, whole.sensor)
    assert len(checked) == sum(map(len, pieces))


def test_a_long_video_needs_no_more_memory_than_a_short_one():
    def peak(num_frames):
        tracemalloc.start()
        for _ in simulate(moving_edge(num_frames, (24, 200))):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(90) < 1.5 * peak(10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold_on": 0.0},
        {"threshold_off": float("nan")},
        {"linear_below": 0.5},
        {"leak_rate_hz": -1.0},
        {"refractory_us": -1},
        {"seed": -1},
    ],
)
def test_a_sensor_that_cannot_be_is_not_built(wrong):
    with pytest.raises(MediaError):
        SensorModel(**wrong)


def test_frames_that_do_not_fit_are_refused():
    simulator = Simulator(SMALL)
    frame = np.zeros((24, 32, 3), dtype=np.uint8)
    simulator.see(0, frame)
    with pytest.raises(MediaError, match="sort the frames"):
        simulator.see(0, frame)
    with pytest.raises(MediaError, match="sensor's size"):
        simulator.see(10, frame[:5])
    with pytest.raises(MediaError, match="finite"):
        simulator.see_light(20, np.full((24, 32), np.nan))


def test_a_real_drive_gives_events_of_both_polarities_along_its_edges():
    frames = stream_frames(sample("udacity_solidWhiteRight.mp4"))
    first = [next(frames) for _ in range(4)]
    events = Events.concatenate(list(simulate(first)))
    assert events.sensor == SensorSize(960, 540)
    assert 0.2 < np.count_nonzero(events.p) / len(events) < 0.8
    assert len(events) > 20_000
