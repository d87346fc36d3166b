"""A clip: frames and events of one scene on one clock.

Owns time alignment. The clock is the video's: microseconds from its first frame. Where events
were recorded on another clock, the difference is stated, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.digests import digest_arrays
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart.media.readers.opening import open_recording
from headstart.media.video import Video


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames and events whose times are on one clock; one of the two may be absent."""

    video: Video | None = None
    events: Events | None = None

    def __post_init__(self) -> None:
        if self.video is None and self.events is None:
            raise MediaError("a clip of nothing; give it a video, events, or both")

    def digest(self) -> str:
        """The content's name: equal for equal frames and events at equal times."""
        streams = (
            "" if stream is None else stream.digest() for stream in (self.video, self.events)
        )
        return digest_arrays("clip", np.frombuffer("|".join(streams).encode(), np.uint8))


@dataclass(frozen=True)
class ClipFiles:
    """Where a clip is to be read from: a video, a recording of events, or both.

    The part is ``start_us <= time < stop_us``, on the video's clock where there is a video and
    on the recording's own where there is none. ``events_offset_us`` is added to the events'
    times to bring them onto the video's clock.
    """

    video: str | Path | None = None
    events: str | Path | None = None
    start_us: int | None = None
    stop_us: int | None = None
    sensor: SensorSize | None = None
    events_offset_us: int = 0

    def read(self, num_frames: int | None = None) -> Clip:
        """Read it; of the video at most ``num_frames``, spread uniformly.

        Without ``stop_us``, events are read for as long as there are frames.
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


class ClipBuilder:
    """Collects a clip that arrives in pieces, in any order; `build` may be called as it grows.

    Pieces are kept, not copied: do not change an array after handing it over. Not thread-safe.
    """

    def __init__(self, sensor: SensorSize) -> None:
        self._sensor = sensor
        self._frames: dict[int, NDArray[np.uint8]] = {}
        self._pieces: list[Events] = []

    def add_frame(self, time_us: int, frame: NDArray[np.uint8]) -> None:
        """One frame, uint8 [height, width, 3]; its time must be new and its size the others'."""
        if time_us in self._frames:
            raise MediaError(f"a second frame at {time_us} us; give each frame a time of its own")
        for earlier in self._frames.values():
            if earlier.shape != frame.shape:
                raise MediaError(
                    f"a frame of {frame.shape} after one of {earlier.shape}; "
                    "give frames of one size"
                )
            break
        self._frames[time_us] = frame

    def add_events(self, events: Events) -> None:
        """One piece of the events; pieces must not overlap in time."""
        if events.sensor != self._sensor:
            raise MediaError(f"events of {events.sensor} in a clip of {self._sensor}")
        self._pieces.append(events)

    def build(self) -> Clip:
        """The clip so far: the same, and of the same digest, however its pieces arrived."""
        if not self._frames:
            raise MediaError("a clip without frames; add at least one before building it")
        times_us = sorted(self._frames)
        video = Video(
            np.stack([self._frames[time] for time in times_us]),
            np.array(times_us, dtype=np.int64),
        )
        ordered = sorted((piece for piece in self._pieces if len(piece)), key=_span)
        return Clip(video, Events.concatenate([Events.empty(self._sensor), *ordered]))


def _span(piece: Events) -> tuple[int, int]:
    return int(piece.t[0]), int(piece.t[-1])
