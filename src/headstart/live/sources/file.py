"""A video file, shown at its own pace as a camera would have sent it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.live.sources.buffered import BufferedSource
from headstart.live.sources.feed import FeedCounts
from headstart.live.sources.pace import Pace
from headstart.media.video import stream_frames

counts_nothing = FeedCounts()


def video_file(path: str | Path, *, speed: float = 1.0, loop: bool = False) -> BufferedSource:
    """A `Source` of the file's frames at the file's times; with ``loop``, over and over."""
    return BufferedSource(str(path), _Playback(Path(path), speed, loop))


class _Playback:
    """A `Feed`."""

    counts = counts_nothing

    def __init__(self, path: Path, speed: float, loop: bool) -> None:
        self._path, self._loop = path, loop
        self._pace = Pace(speed)

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        start_us = last_us = step_us = 0
        while True:
            for file_us, frame in stream_frames(self._path):
                time_us = start_us + file_us
                if not self._pace.wait_until(time_us):
                    return
                yield time_us, frame
                step_us, last_us = max(1, time_us - last_us), time_us
            if not self._loop:
                return
            start_us = last_us + step_us

    def close(self) -> None:
        self._pace.stop()
