"""A folder of recordings, or one of them, as streams of clips, each a second long.

DSEC: ``<sequence>/events/left/events.h5`` with ``<sequence>/images/timestamps.txt`` and
``<sequence>/images/left/rectified/*.png``. Otherwise each video of the folder is a recording, and
an event file of the same name (``drive.mp4``, ``drive.h5``) holds the events of that video, on the
video's clock.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.errors import MediaError
from headstart.media.clip import Clip, ClipFiles
from headstart.media.events import SensorSize
from headstart.media.video import Video, frame_times, read_windows
from headstart_events.readers.opening import SUFFIXES, open_recording
from headstart_research.bench.clip_stream import ClipStream

CLIP_US = 1_000_000
WINDOW_US = 50_000  # the events at a clip's end: event models refuse long windows
VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm")
DSEC_EVENTS = "events/left/events.h5"
DSEC_SENSOR = SensorSize(640, 480)


def folder_streams(folder: Path, sensor: SensorSize | None = None) -> list[ClipStream]:
    """The recordings of a folder, by name, or the one video that ``folder`` is.

    ``sensor`` is for event files that say no size.
    """
    if folder.is_file():
        return [VideoStream(folder.name, folder, sensor)]
    sequences = sorted(path.parents[2] for path in folder.rglob(DSEC_EVENTS))
    if sequences:
        return [DsecStream(str(path.relative_to(folder)), path) for path in sequences]
    videos = sorted(path for path in folder.iterdir() if path.suffix.lower() in VIDEOS)
    if not videos:
        raise MediaError(
            f"{folder} holds no recordings: neither DSEC sequences ({DSEC_EVENTS} and images/) nor"
            f" videos ({', '.join(VIDEOS)})"
        )
    return [VideoStream(path.name, path, sensor) for path in videos]


@dataclass(frozen=True)
class VideoStream:
    """A video, with the event file beside it if there is one."""

    name: str
    path: Path
    sensor: SensorSize | None = None

    def count(self) -> int:
        """Of its whole seconds."""
        return int(frame_times(self.path)[-1]) // CLIP_US

    def clips(
        self, num_frames: int, leave_out: Container[int] = frozenset()
    ) -> Iterator[tuple[int, Clip]]:
        """As `ClipStream.clips`; the video is decoded once."""
        numbers = [number for number in range(self.count()) if number not in leave_out]
        windows = [(number * CLIP_US, (number + 1) * CLIP_US) for number in numbers]
        events = next((f for end in SUFFIXES if (f := self.path.with_suffix(end)).exists()), None)
        for video in read_windows(self.path, windows, num_frames):
            number = int(video.times_us[0]) // CLIP_US
            yield number, self._with_events(video, events, (number + 1) * CLIP_US)

    def _with_events(self, video: Video, events: Path | None, stop_us: int) -> Clip:
        if events is None:
            return Clip(video)
        files = ClipFiles(
            events=events, start_us=stop_us - WINDOW_US, stop_us=stop_us, sensor=self.sensor
        )
        return Clip(video, files.read().events)


@dataclass(frozen=True)
class DsecStream:
    """A sequence of DSEC, as it is unpacked."""

    name: str
    sequence: Path

    def count(self) -> int:
        """Of its whole seconds."""
        times_us = self._times_us(self._pictures())
        return int(times_us[-1] - times_us[0]) // CLIP_US

    def clips(
        self, num_frames: int, leave_out: Container[int] = frozenset()
    ) -> Iterator[tuple[int, Clip]]:
        """As `ClipStream.clips`, on the sequence's own clock."""
        pictures = self._pictures()
        times_us = self._times_us(pictures)
        with open_recording(self.sequence / DSEC_EVENTS, sensor=DSEC_SENSOR) as recording:
            for number in range(self.count()):
                start_us = int(times_us[0]) + number * CLIP_US
                stop_us = start_us + CLIP_US
                inside = np.flatnonzero((times_us >= start_us) & (times_us < stop_us))
                if number in leave_out or not len(inside):
                    continue
                spread = np.linspace(0, len(inside) - 1, min(num_frames, len(inside))).astype(int)
                chosen = inside[spread]
                frames = np.stack(
                    [np.asarray(Image.open(pictures[i]).convert("RGB")) for i in chosen]
                )
                seen = recording.read(stop_us - WINDOW_US, stop_us)
                yield number, Clip(Video(frames, times_us[chosen]), seen)

    def _pictures(self) -> list[Path]:
        return sorted((self.sequence / "images" / "left" / "rectified").glob("*.png"))

    def _times_us(self, pictures: list[Path]) -> NDArray[np.int64]:
        note = self.sequence / "images" / "timestamps.txt"
        if not pictures or not note.exists():
            raise MediaError(
                f"{self.sequence} has events but no images/timestamps.txt and"
                " images/left/rectified/*.png: unpack the sequence's images beside its events"
            )
        times_us = np.loadtxt(note, dtype=np.int64, ndmin=1)
        if len(times_us) != len(pictures):
            raise MediaError(
                f"{note} states {len(times_us)} times for {len(pictures)} pictures: unpack both"
                " again"
            )
        return times_us
