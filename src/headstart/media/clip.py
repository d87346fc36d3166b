"""A clip: frames and events of one scene on one clock, or still pictures.

The clock is the video's: microseconds from its first frame. Where events were recorded on another
clock, the caller states the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from headstart.errors import MediaError
from headstart.media.digests import digest_arrays
from headstart.media.events import MAX_TIME_US, Events, SensorSize, open_recording
from headstart.media.video import Video


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames and events on one clock, either of which may be None; and still pictures."""

    video: Video | None = None
    events: Events | None = None
    pictures: tuple[NDArray[np.uint8], ...] = ()
    """Each uint8 [height, width, 3], RGB."""

    def __post_init__(self) -> None:
        if self.video is None and self.events is None and not self.pictures:
            raise MediaError("a clip of nothing; give it a video, events, or pictures")
        for one in self.pictures:
            if one.dtype != np.uint8 or one.ndim != 3 or one.shape[2] != 3 or 0 in one.shape:
                raise MediaError(
                    f"a picture is {one.dtype} {list(one.shape)}; give uint8 [height, width, 3],"
                    " RGB"
                )

    def digest(self) -> str:
        """A digest of the content: equal for equal frames and events at equal times."""
        streams = (
            "" if stream is None else stream.digest() for stream in (self.video, self.events)
        )
        named = np.frombuffer("|".join(streams).encode(), np.uint8)
        return digest_arrays("clip", named, *self.pictures)


@dataclass(frozen=True)
class ClipFiles:
    """The files of a clip, and which part of them: a video, a recording of events, pictures.

    The part is ``start_us <= time < stop_us``, on the video's clock, or on the recording's own
    without a video. ``events_offset_us`` is added to the events' times to get the video's.
    """

    video: str | Path | None = None
    events: str | Path | None = None
    start_us: int | None = None
    stop_us: int | None = None
    sensor: SensorSize | None = None
    events_offset_us: int = 0
    pictures: tuple[str | Path, ...] = ()

    def read(self, num_frames: int | None = None) -> Clip:
        """Read the clip, with at most ``num_frames`` of the video, spread uniformly.

        Without ``stop_us``, events are read up to the last frame.
        """
        pictures = tuple(read_picture(path) for path in self.pictures)
        if self.video is None:
            if self.events is None and pictures:
                return Clip(pictures=pictures)
            return Clip(None, self._read_events(self.start_us, self.stop_us), pictures)
        video = Video.read(self.video, num_frames, self.start_us, self.stop_us)
        if self.events is None:
            return Clip(video, None, pictures)
        stop_us = int(video.times_us[-1]) + 1 if self.stop_us is None else self.stop_us
        return Clip(video, self._read_events(self.start_us or 0, stop_us), pictures)

    def _read_events(self, start_us: int | None, stop_us: int | None) -> Events:
        if self.events is None:
            raise MediaError("neither a video nor a recording of events was named; give one")
        with open_recording(self.events, sensor=self.sensor) as recording:
            if start_us is None and stop_us is None:
                events = recording.read_all()
            else:
                start = recording.first_us if start_us is None else start_us - self.events_offset_us
                stop = MAX_TIME_US if stop_us is None else stop_us - self.events_offset_us
                events = recording.read(start, stop)
        return events.shifted(self.events_offset_us)


PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
"""What the name of a still picture ends with."""


def read_picture(path: str | Path) -> NDArray[np.uint8]:
    """A picture as a viewer shows it, uint8 [height, width, 3], RGB."""
    try:
        with Image.open(path) as opened:
            return np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise MediaError(f"cannot read the picture {path}: {error}; give a JPEG or PNG") from error
