"""Files as sources: a folder that pictures or pieces of video are written to, and a video file."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from headstart.errors import HeadstartError, SourceError
from headstart.live.sources.pace import Pace, SourceClock
from headstart.live.sources.source import BufferedSource, SourceCounts
from headstart.media.clip import PICTURES
from headstart.media.stream import TimedFrame
from headstart.media.video import stream_frames

VIDEOS = (".mp4", ".mkv", ".ts", ".avi", ".webm", ".mov")
LOOK_S = 0.1
SETTLED_S = 1.0
"""A file that has not grown for so long is whole."""

logger = logging.getLogger(__name__)


def folder(path: str | Path) -> BufferedSource:
    """A `Source` of the pictures and videos that are written to a folder from now on.

    They are shown in the order of their names, each when it is whole: when it has not grown for a
    second, or a file of a later name is there. What was there before and does not grow is left
    out.
    """
    if not Path(path).is_dir():
        raise SourceError(f"{path} is no folder; make it, or check the path")
    return BufferedSource(str(path), _FolderFeed(Path(path)))


@dataclass(frozen=True)
class _Seen:
    """A file as it was when it was last found changed."""

    num_bytes: int
    changed_ns: int
    since_s: float

    def is_same(self, other: "_Seen") -> bool:
        return (self.num_bytes, self.changed_ns) == (other.num_bytes, other.changed_ns)


class _FolderFeed:
    """A `Feed`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pace = Pace()
        self._num_unreadable = 0
        self._seen: dict[str, _Seen] = {}
        # Files that are not shown, or not any more, unless they grow.
        self._done = self._listed()

    @property
    def counts(self) -> SourceCounts:
        return SourceCounts(unreadable=self._num_unreadable)

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        clock = SourceClock()
        while not self._pace.is_stopped:
            whole = self._whole()
            for number, name in enumerate(whole):
                # One that others wait behind is shown without waiting for its times.
                is_last = number == len(whole) - 1
                try:
                    for stated_us, frame in self._read(self._path / name, is_last):
                        yield clock.stamp(stated_us), frame
                except (HeadstartError, OSError, SyntaxError, ValueError) as error:
                    self._num_unreadable += 1
                    logger.warning("%s cannot be read: %s", self._path / name, error)
                clock.reconnected()
                if self._pace.is_stopped:
                    return
            if not whole:
                self._pace.sleep(LOOK_S)

    def close(self) -> None:
        self._pace.stop()

    def _read(self, path: Path, is_last: bool) -> Iterator[TimedFrame]:
        if path.suffix.lower() in PICTURES:
            with PIL.Image.open(path) as picture:
                yield None, np.asarray(picture.convert("RGB"))
            return
        self._pace.restart()
        for time_us, frame in stream_frames(path):
            if is_last and not self._pace.wait_until(time_us):
                return
            yield time_us, frame

    def _whole(self) -> list[str]:
        """The files that are whole and were not shown yet, in the order of their names."""
        listed = self._listed()
        fresh = {
            name: self._since(name, seen)
            for name, seen in sorted(listed.items())
            if not (name in self._done and self._done[name].is_same(seen))
        }
        self._seen = fresh
        self._done = {name: seen for name, seen in self._done.items() if name in listed}
        now_s, last = time.monotonic(), max(fresh, default="")
        whole = [
            name
            for name, seen in fresh.items()
            if seen.num_bytes and (name != last or now_s - seen.since_s >= SETTLED_S)
        ]
        self._done |= {name: listed[name] for name in whole}
        return whole

    def _since(self, name: str, seen: _Seen) -> _Seen:
        before = self._seen.get(name)
        return before if before is not None and before.is_same(seen) else seen

    def _listed(self) -> dict[str, _Seen]:
        listed = {}
        for path in self._path.iterdir():
            if path.suffix.lower() in (*PICTURES, *VIDEOS):
                try:
                    found = path.stat()
                except OSError:
                    continue  # taken away meanwhile
                listed[path.name] = _Seen(found.st_size, found.st_mtime_ns, time.monotonic())
        return listed


def video_file(path: str | Path, *, speed: float = 1.0) -> BufferedSource:
    """A `Source` of the file's frames at the file's times, or ``speed`` times as fast."""
    return BufferedSource(str(path), _Playback(Path(path), speed))


class _Playback:
    """A `Feed`."""

    counts = SourceCounts()

    def __init__(self, path: Path, speed: float) -> None:
        self._path, self._pace = path, Pace(speed)

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        for time_us, frame in stream_frames(self._path):
            if not self._pace.wait_until(time_us):
                return
            yield time_us, frame

    def close(self) -> None:
        self._pace.stop()
