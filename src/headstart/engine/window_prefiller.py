"""Prefills the windows of live cameras as they grow, in the time that answers leave.

A feed is a request of one token: the prompt up to the frames there are. What it computed stays in
vLLM's prefix cache. Nothing is pinned, so vLLM may evict it, and then the question computes it
again: an answer is the same with and without feeds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headstart.engine.question import RequestOptions
from headstart.media.video import Video
from headstart.speculation.drafter import StreamKey

MAX_NEW_FRAMES = 2
"""Of one feed. It bounds the step that an answer may have to wait for."""

MAX_FEED_S = 60.0
"""Of one feed. An engine that does not schedule it is paused or ill; feeding goes on later."""

_log = logging.getLogger("headstart")


@dataclass(frozen=True, eq=False)
class PrefillStep:
    """The frames of a growing window, as many as are computed with it."""

    stream: StreamKey
    video: Video
    options: RequestOptions


@dataclass(eq=False)
class PrefillLane:
    """One growing window on its way into vLLM's cache; its camera keeps it, and offers it."""

    stream: StreamKey
    options: RequestOptions = field(default_factory=RequestOptions)
    """Of the questions to come: it stands before the frames."""
    frames_per_item: int = 1
    """Only so many frames together can be computed before more have landed."""
    frames: Sequence[NDArray[np.uint8]] = ()
    times_us: Sequence[int] = ()
    urgency: float = 0.0
    num_fed: int = 0
    on_fed: Callable[[], None] = lambda: None
    """Called when all frames that have landed are computed."""

    @property
    def num_whole(self) -> int:
        """Frames of whole items that have landed."""
        return len(self.frames) // self.frames_per_item * self.frames_per_item

    @property
    def is_behind(self) -> bool:
        """Whether items of it are not computed yet."""
        return self.num_fed < self.num_whole

    @property
    def num_next(self) -> int:
        """How many frames are computed with the next feed: all that are, and the next items'."""
        num_new = max(MAX_NEW_FRAMES // self.frames_per_item, 1) * self.frames_per_item
        return min(self.num_whole, self.num_fed + num_new)

    def next_feed(self) -> PrefillStep:
        """All that is computed, and the frames of the next items."""
        num_frames = self.num_next
        times_us = np.array(self.times_us[:num_frames], dtype=np.int64)
        video = Video(np.stack(self.frames[:num_frames]), times_us)
        return PrefillStep(self.stream, video, self.options)


@dataclass(eq=False)
class _Answering:
    """An answer under way."""

    met_feed: bool = False


@dataclass
class PrefillCounts:
    """What became of the frames that were offered."""

    feeds: int = 0
    failed: int = 0
    frames: int = 0


@dataclass(eq=False)
class WindowPrefiller:
    """One for an engine, used from its event loop. One feed is under way at a time.

    An answer under way meets one feed at most, its own stream's or another's. So feeding delays no
    answer by more than the frames of one feed. Among windows the most urgent is fed first, of
    equals the one that has waited longest.
    """

    prefill: Callable[[PrefillStep], Awaitable[None]]
    counts: PrefillCounts = field(default_factory=PrefillCounts)
    _waiting: dict[PrefillLane, None] = field(default_factory=dict)
    """The windows that are behind, those that have waited longest first."""
    _answers: set[_Answering] = field(default_factory=set)
    _task: "asyncio.Task[None] | None" = None

    def offer(
        self,
        lane: PrefillLane,
        frames: Sequence[NDArray[np.uint8]],
        times_us: Sequence[int],
        urgency: float = 0.0,
    ) -> None:
        """Have the frames of a window computed, all there are so far, when there is time."""
        lane.frames, lane.times_us, lane.urgency = frames, times_us, urgency
        if lane.is_behind:
            self._waiting[lane] = None
            self._go_on()

    def withdraw(self, lane: PrefillLane) -> None:
        """Compute no more of a window: it is asked about, or no longer of interest."""
        self._waiting.pop(lane, None)

    @property
    def is_idle(self) -> bool:
        """Whether all frames that were offered are computed."""
        return not self._is_feeding and not self._waiting

    @property
    def _is_feeding(self) -> bool:
        # One that was cancelled before it began is done, and could not say so.
        return self._task is not None and not self._task.done()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """An answer is under way as long as the block lasts."""
        answer = _Answering(met_feed=self._is_feeding)
        self._answers.add(answer)
        try:
            yield
        finally:
            self._answers.discard(answer)
            self._go_on()

    def _go_on(self) -> None:
        """Begin the next feed, if there is one and no answer would meet its second."""
        if self._is_feeding or any(answer.met_feed for answer in self._answers):
            return
        if not self._waiting:
            return
        lane = max(self._waiting, key=lambda lane: lane.urgency)
        for answer in self._answers:
            answer.met_feed = True
        self._task = asyncio.create_task(self._feed(lane))

    async def _feed(self, lane: PrefillLane) -> None:
        num_frames = lane.num_next
        try:
            async with asyncio.timeout(MAX_FEED_S):
                await self.prefill(lane.next_feed())
            self.counts.feeds += 1
            self.counts.frames += num_frames - lane.num_fed
        except Exception as error:
            # The question computes what was not fed, and says what is wrong with the engine.
            self.counts.failed += 1
            why = str(error) or type(error).__name__
            _log.debug("a feed of %s failed: %s", lane.stream.stream, why)
        finally:  # also where it was cancelled: one feed must not end all feeding
            lane.num_fed = num_frames
            if lane in self._waiting:  # or else it was withdrawn
                del self._waiting[lane]
                if lane.is_behind:
                    self._waiting[lane] = None  # after those that have waited meanwhile
            self._task = None
        if not lane.is_behind:
            lane.on_fed()
        self._go_on()
