"""The drive as a live camera: the same street, drawn while it is watched."""

from itertools import islice

import numpy as np
import pytest

from headstart_lab.errors import LabError
from headstart_lab.live_drive import LiveDrive
from headstart_lab.world.drive import Drive
from headstart_lab.world.painter import render


def test_the_frames_are_the_drives_and_come_at_its_pace(paced):
    source = LiveDrive(3, start_s=5, frame_hz=10, speed=2)
    arrivals = list(islice(source.arrivals(), 11))
    assert sum(paced.waits_s[:11]) == pytest.approx(0.5)
    drive = Drive(3)
    for number, arrival in enumerate(arrivals):
        assert arrival.time_us == number * 100_000
        assert np.array_equal(arrival.frame, render(drive.scene(5_000_000 + arrival.time_us)))
        assert source.scene(arrival.time_us) == drive.scene(5_000_000 + arrival.time_us)


def test_what_is_no_drive_is_said():
    with pytest.raises(LabError, match="frames a second"):
        LiveDrive(3, frame_hz=0)
