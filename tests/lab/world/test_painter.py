"""The painter: pictures of the right kind, darker at night, and what is said to be there is."""

import dataclasses

import numpy as np
import pytest

from headstart_lab.world.air import Eye
from headstart_lab.world.drive import SECOND_US, Drive
from headstart_lab.world.figures import PAINTS
from headstart_lab.world.kinds import Colour, Daylight, Kind, Lamp, Role, Weather
from headstart_lab.world.painter import render


@pytest.fixture(scope="module")
def day():
    """A dry day with a vehicle in front."""
    for seed in range(40):
        drive = Drive(seed)
        for second in range(0, 40, 2):
            scene = drive.scene(second * SECOND_US)
            ahead = any(
                t.in_frames and t.role is Role.AHEAD and t.kind is Kind.TRUCK and t.z < 15
                for t in scene.things
            )
            if ahead and scene.daylight is Daylight.DAY and scene.weather is Weather.CLEAR:
                return scene
    raise AssertionError("no such scene")


def test_a_picture_is_rgb_of_the_cameras_size(day):
    picture = render(day)
    assert picture.dtype == np.uint8
    assert picture.shape == (168, 168, 3)
    assert np.array_equal(picture, render(day))


def test_night_is_dark_and_grainy_to_the_frame_and_not_to_events(day):
    night = dataclasses.replace(day, daylight=Daylight.NIGHT)
    assert render(night).mean() < 0.5 * render(day).mean()
    # Above the horizon, where no headlight reaches.
    above = slice(0, 60)
    assert render(night, Eye.EVENTS)[above].mean() > 2 * render(night)[above].mean()
    later = dataclasses.replace(night, time_us=night.time_us + 1)
    assert not np.array_equal(render(night), render(later))
    assert np.array_equal(render(night, Eye.EVENTS), render(later, Eye.EVENTS))


def test_fog_takes_contrast_away(day):
    fog = dataclasses.replace(day, weather=Weather.FOG)
    assert render(fog).std() < 0.8 * render(day).std()


@pytest.mark.parametrize("colour", list(Colour))
def test_a_thing_has_the_colour_it_is_said_to_have(day, colour):
    truck = next(t for t in day.things if t.kind is Kind.TRUCK and t.role is Role.AHEAD)
    painted = dataclasses.replace(truck, colour=colour)
    picture = render(dataclasses.replace(day, things=(painted,), signal=None))
    box = truck.box
    patch = picture[int(box.top) : int(box.bottom), int(box.left) : int(box.right)].reshape(-1, 3)
    distance = {
        paint: np.abs(patch.astype(int) - np.array(rgb)).sum(axis=1).min()
        for paint, rgb in PAINTS.items()
    }
    assert distance[colour] < 40


def test_the_traffic_light_shines_in_its_colour():
    for seed in range(60):
        drive = Drive(seed)
        for second in range(0, 60, 2):
            scene = drive.scene(second * SECOND_US)
            if scene.signal and scene.signal.in_frames and scene.weather is Weather.CLEAR:
                red, green = (
                    render(
                        dataclasses.replace(
                            scene, signal=dataclasses.replace(scene.signal, lamp=lamp)
                        )
                    ).astype(int)
                    for lamp in (Lamp.RED, Lamp.GREEN)
                )
                change = red - green
                assert change[..., 0].max() > 100
                assert change[..., 1].min() < -100
                return
    raise AssertionError("no traffic light was met")
