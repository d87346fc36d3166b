"""A drive as a live camera: drawn while it is watched, at the pace of its clock."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from headstart.live.sources.pace import Pace
from headstart.live.sources.source import BufferedSource, SourceCounts
from headstart_lab.errors import LabError
from headstart_lab.world.drive import FRAME_HZ, SECOND_US, Drive
from headstart_lab.world.painter import render
from headstart_lab.world.scene import Scene


class LiveDrive(BufferedSource):
    """A `Source` of the frames of one drive, which does not end."""

    def __init__(
        self, seed: int, *, start_s: int = 0, frame_hz: int = FRAME_HZ, speed: float = 1.0
    ) -> None:
        """From second ``start_s`` of the drive; its clock counts from there."""
        if not 1 <= frame_hz <= 1000 or start_s < 0:
            raise LabError("a drive has 1 to 1000 frames a second, and starts at 0 or later")
        super().__init__(f"drive:{seed}", _DriveFeed(Drive(seed), start_s, frame_hz, Pace(speed)))
        # The feed's own is used by its thread.
        self._drive, self._start_us = Drive(seed), start_s * SECOND_US

    def scene(self, time_us: int) -> Scene:
        """The truth: what there was at a time of the source's clock. From one thread at a time."""
        return self._drive.scene(self._start_us + time_us)


class _DriveFeed:
    """A `Feed`."""

    counts = SourceCounts()

    def __init__(self, drive: Drive, start_s: int, frame_hz: int, pace: Pace) -> None:
        self._drive, self._start_us, self._pace = drive, start_s * SECOND_US, pace
        self._step_us = SECOND_US // frame_hz

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        time_us = 0
        while True:
            frame = render(self._drive.scene(self._start_us + time_us))
            if not self._pace.wait_until(time_us):
                return
            yield time_us, frame
            time_us += self._step_us

    def close(self) -> None:
        self._pace.stop()


def open_drive(text: str) -> LiveDrive:
    """The drive of ``drive:SEED``."""
    if not text.isdecimal() or len(text) > 18:
        raise LabError(f"drive:{text} names no drive; give its seed, as in drive:7")
    return LiveDrive(int(text))
