"""Windows of a camera's time, and the frames they are made of.

A window has as many slots as the target is shown frames. Their grid is fixed when the window
begins, and a slot takes the first frame that falls into it. So a window only ever appends: whatever
is computed of its first frames stays right until its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import LiveError, MediaError
from headstart.media.events import Events
from headstart.media.video import Video

MAX_GROWING = 8
"""Windows of a stream that grow at the same time."""


class FrameStatus(StrEnum):
    """What became of a frame."""

    TAKEN = "taken"
    """It is in a window."""
    SPARE = "spare"
    """The slots that it falls into have a frame already."""
    LATE = "late"
    """A frame with a later time came before it, or its window has ended."""
    DOUBLED = "doubled"
    """The newest frame has the same time."""
    MISFIT = "misfit"
    """Its size is another than that of its window's frames."""


@dataclass(frozen=True)
class Windows:
    """A window of ``seconds`` starts every so many seconds: ``every``.

    Without ``every``, one starts when the last ends (tumbling). With a smaller one they overlap
    (stepping): a question sees between ``seconds - every`` and ``seconds`` at any time.
    """

    seconds: float
    every: float | None = None

    def __post_init__(self) -> None:
        if not 0.01 <= self.seconds <= 86_400:
            raise LiveError(f"a window of {self.seconds} s: give 0.01 s to a day")
        if not 0 < self.step_s <= self.seconds:
            raise LiveError(
                f"a window of {self.seconds} s every {self.every} s leaves frames out: give a step"
                " above 0 and no longer than the window"
            )
        if self.seconds > MAX_GROWING * self.step_s:
            raise LiveError(
                f"windows of {self.seconds} s every {self.every} s are more than {MAX_GROWING} at"
                f" a time: give a step of {self.seconds / MAX_GROWING:g} s or more"
            )

    @property
    def step_s(self) -> float:
        return self.seconds if self.every is None else self.every

    def grid(self, origin_us: int) -> "WindowGrid":
        """Where these windows lie, if the first begins at this time."""
        return WindowGrid(origin_us, round(self.seconds * 1e6), round(self.step_s * 1e6))


@dataclass(frozen=True)
class WindowGrid:
    """Where windows begin and end in a camera's time, whether or not frames of them have come."""

    origin_us: int
    """When the first window begins: with the first frame of all."""
    length_us: int
    step_us: int

    def start_us(self, number: int) -> int:
        return self.origin_us + number * self.step_us

    def stop_us(self, number: int) -> int:
        """The first time that does not belong to a window any more."""
        return self.start_us(number) + self.length_us

    def holding(self, time_us: int) -> range:
        """The numbers of the windows that a time falls into, the oldest first."""
        since_us = time_us - self.origin_us
        oldest = max(0, (since_us - self.length_us) // self.step_us + 1)
        return range(oldest, since_us // self.step_us + 1)


@dataclass(frozen=True, eq=False)
class Window:
    """What has landed of a window."""

    number: int
    start_us: int
    stop_us: int
    frames: tuple[NDArray[np.uint8], ...]
    times_us: tuple[int, ...]
    landed_s: float
    """When its last frame landed, on the monotonic clock."""
    events: tuple[Events, ...] = ()
    slot: int = -1
    """Of its last frame."""

    def video(self) -> Video:
        return Video(np.stack(self.frames), np.array(self.times_us, dtype=np.int64))

    def landing_us(self, slot: int, num_slots: int) -> int:
        """The first time at which a frame falls into one of so many slots."""
        length_us = self.stop_us - self.start_us
        return self.start_us + -(-slot * length_us // num_slots)

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Everything of it that takes memory; windows that overlap share frames and events."""
        yield from self.frames
        for events in self.events:
            yield from (events.x, events.y, events.t, events.p)

    def all_events(self) -> Events | None:
        """Its events, as a clip has them; none if the camera has no event stream."""
        return Events.concatenate(self.events) if self.events else None


@dataclass(eq=False)
class _Growing:
    number: int
    start_us: int
    stop_us: int
    frames: list[NDArray[np.uint8]] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)
    events: list[Events] = field(default_factory=list)
    last_slot: int = -1
    landed_s: float = 0.0

    def take(
        self, frame: NDArray[np.uint8], time_us: int, num_slots: int, now_s: float
    ) -> FrameStatus:
        slot = (time_us - self.start_us) * num_slots // (self.stop_us - self.start_us)
        if slot <= self.last_slot:
            return FrameStatus.SPARE
        if self.frames and frame.shape != self.frames[0].shape:
            return FrameStatus.MISFIT
        self.frames.append(frame)
        self.times_us.append(time_us)
        self.last_slot, self.landed_s = slot, now_s
        return FrameStatus.TAKEN

    def so_far(self) -> Window:
        return Window(
            self.number,
            self.start_us,
            self.stop_us,
            tuple(self.frames),
            tuple(self.times_us),
            self.landed_s,
            tuple(self.events),
            self.last_slot,
        )


@dataclass(frozen=True, eq=False)
class FrameEffect:
    """What a frame has changed."""

    placement: FrameStatus
    growing: tuple[Window, ...] = ()
    """The windows that still grow and have frames, the oldest first."""
    ended: tuple[Window, ...] = ()
    """Those that ended: full, or passed by. The oldest first."""
    lost: tuple[int, ...] = ()
    """The numbers of those that were dropped since a frame of theirs was lost."""


class GrowingWindows:
    """The windows of one stream that still grow. Not thread-safe.

    Time is the camera's. A window ends with the frame in its last slot, or with the first frame
    after its end, or when `end_before` is told that no more will come.
    """

    def __init__(self, windows: Windows, num_slots: int) -> None:
        self._windows, self._num_slots = windows, num_slots
        self._grid: WindowGrid | None = None
        self._newest_us: int | None = None
        self._num_begun = 0
        self._full_until_us = 0
        self._growing: list[_Growing] = []
        self._ended: list[Window] = []
        self.num_missing = 0
        """Slots without a frame, of all windows that ended."""

    def land(
        self, frame: NDArray[np.uint8], time_us: int, now_s: float, events: Events | None = None
    ) -> FrameEffect:
        """Put a frame into the slots it falls into. The frame is copied if it is taken."""
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or 0 in frame.shape:
            raise MediaError(
                f"a frame is {frame.dtype} {list(frame.shape)}; give uint8 [height, width, 3], RGB"
            )
        if self._newest_us is not None and time_us <= self._newest_us:
            is_same = time_us == self._newest_us
            return self._landing(FrameStatus.DOUBLED if is_same else FrameStatus.LATE)
        self._newest_us = time_us
        ended = self._end(time_us)
        self._begin(time_us)
        placements = set()
        kept = frame.copy() if self._growing else frame
        for window in self._growing:
            if events is not None:
                window.events.append(events)
            placements.add(window.take(kept, time_us, self._num_slots, now_s))
        full = [one for one in self._growing if one.last_slot == self._num_slots - 1]
        ended += [self._close(window) for window in full]
        # Without a window that grows, either its frames are complete or it was ended before.
        usual = FrameStatus.SPARE if time_us < self._full_until_us else FrameStatus.LATE
        order = (FrameStatus.TAKEN, FrameStatus.MISFIT, FrameStatus.SPARE)
        placement = next((each for each in order if each in placements), usual)
        if full:
            self._full_until_us = full[-1].stop_us
        return self._landing(placement, ended)

    def lose(self, time_us: int) -> FrameEffect:
        """A frame was lost on its way: drop every window that it falls into, and all its frames.

        A window that was full before has ended, and is whole. Frames of a dropped window may still
        come, and are late.
        """
        self._newest_us = max(time_us, self._newest_us or time_us)
        ended = self._end(time_us)
        self._begin(time_us)
        lost = [window for window in self._growing if window.start_us <= time_us]
        self._growing = [window for window in self._growing if window.start_us > time_us]
        landing = self._landing(FrameStatus.LATE, ended)
        return replace(landing, lost=tuple(window.number for window in lost))

    def end_before(self, time_us: int) -> tuple[Window, ...]:
        """End the windows whose time is over by then; their empty slots stay empty."""
        return tuple(self._end(time_us))

    def clear(self) -> None:
        self._growing, self._ended = [], []

    @property
    def asked_about(self) -> Window | None:
        """What a question is about now: the oldest window whose time is not over by the newest
        frame, ended or not; none before the first frame."""
        growing = (window.so_far() for window in self._growing if window.frames)
        newest_us = self._newest_us or 0
        ended = (window for window in self._ended if window.stop_us > newest_us)
        return min((*ended, *growing), key=lambda window: window.number, default=None)

    @property
    def held(self) -> tuple[Window, ...]:
        """The windows whose frames are still kept here."""
        return (*(window.so_far() for window in self._growing), *self._ended)

    @property
    def first_end(self) -> tuple[int, float] | None:
        """When the oldest window will be over in the camera's time, and how long after its last
        frame that is, in seconds; none if no window grows."""
        if not self._growing:
            return None
        window = self._growing[0]
        newest_us = self._newest_us or window.start_us
        return window.stop_us, max(0, window.stop_us - newest_us) / 1e6

    def _begin(self, time_us: int) -> None:
        if self._grid is None:
            self._grid = self._windows.grid(time_us)
        numbers = self._grid.holding(time_us)
        for number in range(max(numbers.start, self._num_begun), numbers.stop):
            start_us, stop_us = self._grid.start_us(number), self._grid.stop_us(number)
            self._growing.append(_Growing(number, start_us, stop_us))
        self._num_begun = max(self._num_begun, numbers.stop)

    def _end(self, time_us: int) -> list[Window]:
        over = [window for window in self._growing if window.stop_us <= time_us]
        return [self._close(window) for window in over]

    def _close(self, window: _Growing) -> Window:
        self._growing.remove(window)
        self.num_missing += self._num_slots - len(window.frames)
        ended, newest_us = window.so_far(), self._newest_us or 0
        if ended.frames:
            self._ended = [one for one in self._ended if one.stop_us > newest_us] + [ended]
        return ended

    def _landing(self, placement: FrameStatus, ended: list[Window] | None = None) -> FrameEffect:
        growing = tuple(window.so_far() for window in self._growing if window.frames)
        return FrameEffect(placement, growing, tuple(one for one in ended or () if one.frames))
