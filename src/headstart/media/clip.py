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
from headstart.media.events import Events, SensorSize
from headstart.media.readers.opening import open_recording
from headstart.media.video import Video


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames and events whose times are on one clock."""

    video: Video
    events: Events

    @classmethod
    def read(
        cls,
        video: str | Path,
        events: str | Path,
        start_us: int = 0,
        stop_us: int | None = None,
        num_frames: int | None = None,
        sensor: SensorSize | None = None,
        events_offset_us: int = 0,
    ) -> Clip:
        """The part ``start_us <= time < stop_us`` of two files.

        ``events_offset_us`` is added to the events' times to bring them onto the video's clock.
        Without ``stop_us``, events are read for as long as there are frames.
        """
        frames = Video.read(video, num_frames, start_us, stop_us)
        stop = int(frames.times_us[-1]) + 1 if stop_us is None else stop_us
        with open_recording(events, sensor=sensor) as recording:
            window = recording.read(start_us - events_offset_us, stop - events_offset_us)
        return cls(frames, window.shifted(events_offset_us))

    def digest(self) -> str:
        """The content's name: equal for equal frames and events at equal times."""
        names = np.frombuffer((self.video.digest() + self.events.digest()).encode(), np.uint8)
        return digest_arrays("clip", names)


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
