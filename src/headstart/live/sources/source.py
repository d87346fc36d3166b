"""Where live frames come from: the port, and what reads frames in a thread of its own."""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.errors import SourceError
from headstart.media.events import Events
from headstart.media.stream import TimedFrame

MAX_WAITING = 16
"""Frames that wait to be taken; 16 of 1920x1080 are 100 MB."""
JOIN_S = 10.0


@dataclass(frozen=True, eq=False)
class Arrival:
    """One frame as it came, and the events since the arrival before."""

    frame: NDArray[np.uint8]
    """RGB, [height, width, 3]."""
    time_us: int
    """On the source's clock: microseconds since its first frame. It always increases."""
    events: Events | None = None
    """On the same clock; None where the source has no event stream."""


@dataclass(frozen=True)
class SourceCounts:
    """What has happened to a source so far."""

    frames: int = 0
    """Arrivals that were read from the source."""
    dropped: int = 0
    """Frames that nobody took in time: the oldest make room."""
    reconnects: int = 0
    unreadable: int = 0
    """Files of a folder that could not be read."""
    lost_because: str | None = None
    """Why a camera that was there is not there now; none before the first connection."""


class Source(Protocol):
    """Frames at the pace of a camera."""

    @property
    def name(self) -> str:
        """What people know it by; holds no password."""

    def arrivals(self) -> Iterator[Arrival]:
        """Yield frames as they come, until the source ends or is closed. Can be called once.

        Blocks while no frame comes. A connection that is lost is made again; only a source whose
        first connection fails raises a `HeadstartError`.
        """

    def close(self) -> None:
        """End `arrivals`, and every thread and process of this source. From any thread."""

    @property
    def counts(self) -> SourceCounts:
        """What has happened so far. From any thread."""


class Feed(Protocol):
    """Frames as they come, on the source's clock."""

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield each frame with its time in us, increasing; blocks while none comes."""

    def close(self) -> None:
        """End `frames` soon. From any thread."""

    @property
    def counts(self) -> SourceCounts:
        """What went wrong so far; whoever reads it counts the frames. From any thread."""


class Connection(Protocol):
    """One connection to a camera. Nothing is connected before `frames` is iterated."""

    def frames(self) -> Iterator[TimedFrame]:
        """Yield frames as they come. Returning is the stream's end; a `HeadstartError` or
        `OSError` is its loss."""

    def close(self) -> None:
        """End `frames` soon. From any thread."""


class BufferedSource:
    """A `Source` over a feed. Where frames are taken too slowly, the oldest of a few go."""

    def __init__(self, name: str, feed: Feed, max_waiting: int = MAX_WAITING) -> None:
        self._name, self._feed = name, feed
        self._waiting: deque[Arrival] = deque()
        self._max_waiting = max_waiting
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._error: BaseException | None = None
        self._num_frames = self._num_dropped = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def counts(self) -> SourceCounts:
        feed = self._feed.counts
        with self._changed:
            return replace(feed, frames=self._num_frames, dropped=self._num_dropped)

    def arrivals(self) -> Iterator[Arrival]:
        with self._changed:
            if self._thread is not None:
                raise SourceError(f"{self._name} is being read already; open it a second time")
            if self._is_over:
                return
            self._thread = threading.Thread(
                target=self._read, name=f"headstart source {self._name}", daemon=True
            )
            self._thread.start()
        try:
            while (arrival := self._next()) is not None:
                yield arrival
        finally:
            self.close()

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._waiting.clear()
            self._changed.notify_all()
        self._feed.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _next(self) -> Arrival | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            if self._waiting:
                return self._waiting.popleft()
            if self._error is not None:
                raise self._error
            return None

    def _read(self) -> None:
        try:
            for time_us, frame in self._feed.frames():
                with self._changed:
                    if self._is_over:
                        return
                    self._num_frames += 1
                    if len(self._waiting) == self._max_waiting:
                        self._waiting.popleft()
                        self._num_dropped += 1
                    self._waiting.append(Arrival(frame, time_us))
                    self._changed.notify_all()
        except BaseException as error:  # raised where `arrivals` is iterated
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
