"""A drive: the same for the same seed, continuous within a second, and rich over many."""

import subprocess
import sys

import numpy as np
import pytest

from headstart.media.events import SensorSize
from headstart_lab.world.drive import NUM_FRAMES, SECOND_US, WINDOW_US, Drive
from headstart_lab.world.kinds import Daylight, Kind, Lamp, Pace, Place, Role, Turning, Weather
from headstart_lab.world.writing import write_stage

SMALL = SensorSize(56, 56)


def scenes(num_drives=20, num_seconds=60, step=3):
    for seed in range(num_drives):
        drive = Drive(seed, SMALL)
        for second in range(0, num_seconds, step):
            yield drive.scene(second * SECOND_US + 950_000)


@pytest.fixture(scope="module")
def many():
    return list(scenes())


def test_order_of_asking_changes_nothing():
    forwards, backwards = Drive(5, SMALL), Drive(5, SMALL)
    first = [forwards.clip(index).clip.digest() for index in (2, 9)]
    second = [backwards.clip(index).clip.digest() for index in (9, 2)]
    assert first == second[::-1]


def test_another_process_sees_the_same_bytes():
    code = (
        "from headstart_lab.world.drive import Drive\n"
        "from headstart.media.events import SensorSize\n"
        "print(Drive(7, SensorSize(56, 56)).clip(3).clip.digest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == Drive(7, SMALL).clip(3).clip.digest()


def test_other_seeds_are_other_drives():
    assert len({Drive(seed, SMALL).clip(0).clip.digest() for seed in range(4)}) == 4


def test_a_clip_is_eight_frames_of_its_second_and_events_of_its_end():
    clip = Drive(0, SMALL).clip(4)
    video, events = clip.clip.video, clip.clip.events
    assert video.frames.shape == (NUM_FRAMES, 56, 56, 3)
    assert list(video.times_us - 4 * SECOND_US) == [
        0, 100_000, 250_000, 400_000, 500_000, 650_000, 800_000, 950_000
    ]  # fmt: skip
    assert events.sensor == SMALL
    assert events.t[0] >= 5 * SECOND_US - WINDOW_US
    assert events.t[-1] < 5 * SECOND_US
    assert clip.scene.time_us == video.times_us[-1]


def test_motion_is_continuous_within_a_second():
    for seed in range(6):
        drive = Drive(seed, SMALL)
        for second in range(20):
            before = drive.scene(second * SECOND_US)
            for tenth in range(1, 10):
                after = drive.scene(second * SECOND_US + tenth * 100_000)
                assert 0 <= after.road.travelled_m - before.road.travelled_m < 4.0
                assert abs(after.camera.yaw - before.camera.yaw) < 0.12
                assert abs(after.camera.curvature - before.camera.curvature) < 0.003
                before = after


@pytest.mark.parametrize(
    ("kinds", "seen"),
    [
        (Place, lambda scene: [scene.road.place]),
        (Weather, lambda scene: [scene.weather]),
        (Daylight, lambda scene: [scene.daylight]),
        (Pace, lambda scene: [scene.pace]),
        (Turning, lambda scene: [scene.turning]),
        (Kind, lambda scene: [thing.kind for thing in scene.things if thing.in_frames]),
        (Role, lambda scene: [thing.role for thing in scene.things if thing.in_frames]),
        (Lamp, lambda scene: [scene.signal.lamp] if scene.signal else []),
    ],
)
def test_every_kind_of_thing_is_met(many, kinds, seen):
    assert {kind for scene in many for kind in seen(scene)} == set(kinds)


def test_a_standing_car_gives_events_only_where_something_moves(many):
    standing = [scene for scene in many if scene.pace is Pace.STANDING]
    assert standing
    for scene in standing:
        assert all(thing.moves for thing in scene.things if thing.in_events)


def test_events_show_at_night_what_frames_do_not(many):
    night = [scene for scene in many if scene.daylight is Daylight.NIGHT]
    hidden = [t for scene in night for t in scene.things if t.in_events and not t.in_frames]
    assert hidden
    assert np.mean([t.kind is Kind.PEDESTRIAN or t.role is Role.PARKED for t in hidden]) > 0.5


def test_events_are_many_when_driving_and_few_when_standing():
    counts = {Pace.STANDING: [], Pace.MODERATE: []}
    for seed in range(4):
        drive = Drive(seed)
        for second in range(0, 60, 3):
            scene = drive.scene(second * SECOND_US + 950_000)
            if scene.weather is not Weather.RAIN and len(counts.get(scene.pace, "....")) < 4:
                counts[scene.pace].append(len(drive.clip(second).clip.events))
    assert np.median(counts[Pace.MODERATE]) > 5 * np.median(counts[Pace.STANDING]) > 0


def test_a_stop_may_be_made_longer():
    for seed in range(5):
        usual, longer = write_stage(seed, 0, None), write_stage(seed, 0, None, hold_s=(30.0, 40.0))
        assert longer.surroundings == usual.surroundings
        if 0.0 in usual.speed.values:
            assert 25 < longer.duration_s - usual.duration_s < 40
        else:
            assert longer == usual
    stops = [0.0 in write_stage(seed, 0, None).speed.values for seed in range(5)]
    assert len(set(stops)) == 2
