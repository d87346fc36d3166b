"""A clip: frames and events of one scene on one clock.

The clock is the video's: microseconds from its first frame. Where events were recorded on another
clock, the caller states the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headstart.errors import MediaError
from headstart.media.digests import digest_arrays
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart.media.readers.opening import open_recording
from headstart.media.video import Video


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames and events on one clock; one of the two may be None."""

    video: Video | None = None
    events: Events | None = None

    def __post_init__(self) -> None:
        if self.video is None and self.events is None:
            raise MediaError("a clip of nothing; give it a video, events, or both")

    def digest(self) -> str:
        """A digest of the content: equal for equal frames and events at equal times."""
        streams = (
            "" if stream is None else stream.digest() for stream in (self.video, self.events)
        )
        return digest_arrays("clip", np.frombuffer("|".join(streams).encode(), np.uint8))


@dataclass(frozen=True)
class ClipFiles:
    """The files of a clip, and which part of them: a video, a recording of events, or both.

    The part is ``start_us <= time < stop_us``, on the video's clock, or on the recording's own
    without a video. ``events_offset_us`` is added to the events' times to get the video's.
    """

    video: str | Path | None = None
    events: str | Path | None = None
    start_us: int | None = None
    stop_us: int | None = None
    sensor: SensorSize | None = None
    events_offset_us: int = 0

    def read(self, num_frames: int | None = None) -> Clip:
        """Read the clip, with at most ``num_frames`` of the video, spread uniformly.

        Without ``stop_us``, events are read up to the last frame.
        """
        if self.video is None:
            return Clip(events=self._read_events(self.start_us, self.stop_us))
        video = Video.read(self.video, num_frames, self.start_us, self.stop_us)
        if self.events is None:
            return Clip(video)
        stop_us = int(video.times_us[-1]) + 1 if self.stop_us is None else self.stop_us
        return Clip(video, self._read_events(self.start_us or 0, stop_us))

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
