"""A live session with all that was fed to it, and waiting for what the engine does with it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from headstart.engine.headstart import Headstart
from headstart.live.session import LiveSession
from headstart.live.window_question import WindowAnswer
from headstart.live.windows import FrameStatus, Windows
from headstart.media.events import Events
from rig.waiting import wait_until

Frame = NDArray[np.uint8]
Found = TypeVar("Found")

MAX_TOKENS = 16
QUESTION = "What is happening?"
PATIENCE_S = 120.0
NUM_SLOTS, FRAME_TOKENS, BLOCK = 8, 17, 32
SLOT_US = 1_000_000
WINDOW_S = NUM_SLOTS * SLOT_US / 1e6  # fed faster than this, so that no clock ends a window
TUMBLING = Windows(WINDOW_S)


@dataclass
class Camera:
    """A live session, and all frames that were fed to it, by their times."""

    live: LiveSession
    frames: dict[int, Frame] = field(default_factory=dict)

    def feed(self, frame: Frame, time_us: int, events: Events | None = None) -> FrameStatus:
        self.frames.setdefault(time_us, frame)
        return self.live.feed(frame, time_us, events)

    def feed_all(self, frames: Iterable[Frame], start: int = 0) -> None:
        """One frame in each slot, from a slot on."""
        for number, frame in enumerate(frames, start):
            self.feed(frame, number * SLOT_US)

    def clip(self, answer: WindowAnswer, times_us: Sequence[int] | None = None) -> Frame:
        """The frames that an answer is about: of these times, or one in each of its slots."""
        if times_us is None:
            times_us = range(answer.start_us, answer.stop_us, SLOT_US)[: answer.num_frames]
        assert len(times_us) == answer.num_frames
        return np.stack([self.frames[time_us] for time_us in times_us])


def in_loop(headstart: Headstart, function: Callable[[], Found]) -> Found:
    """What a function returns in the engine's event loop."""

    async def call() -> Found:
        return function()

    return headstart.loop.submit(call()).result(PATIENCE_S)


def feed_slowly(
    headstart: Headstart, camera: Camera, frames: Iterable[Frame], start: int = 0
) -> None:
    """Frames each of which is computed before the next lands; an ending window's is not."""
    feeder = headstart.target.feeder
    for number, frame in enumerate(frames, start):
        camera.feed(frame, number * SLOT_US)
        # It has landed, and whatever was asked about it is answered.
        wait_until(lambda: in_loop(headstart, lambda: feeder.is_idle and not feeder._answers))


def forget_prefixes(headstart: Headstart) -> bool:
    """Drop all that is cached; vLLM refuses as long as a request holds a block."""
    reset = headstart.target.front_end.engine.reset_prefix_cache()
    return bool(headstart.loop.submit(reset).result(PATIENCE_S))
