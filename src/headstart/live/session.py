"""A live session: frames of one camera are fed as they arrive, and questions are about the newest.

with Headstart("path/or/name/of/a/video-llava") as headstart:
    live = LiveSession(headstart.session("front camera"), Windows(seconds=2))
    answers = live.standing("What is happening?")
    for time_us, frame in camera:   # in another thread, as a rule
        live.feed(frame, time_us)
    for answer in answers:
        print(answer.text, answer.wait_s)
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.answers.answer import Answer
from headstart.answers.preview import Shown
from headstart.engine.session import Session
from headstart.engine.window_prefiller import PrefillLane
from headstart.errors import LiveError
from headstart.live.rehearsing import DueFrames
from headstart.live.standing import StandingQuestion
from headstart.live.when import Always, When
from headstart.live.window_question import WindowAnswer, WindowQuestion
from headstart.live.windows import FrameEffect, FrameStatus, GrowingWindows, Window, Windows
from headstart.media.events import Events

PATIENCE_S = 1.0
"""A window whose last frames do not come ends so long after its time."""
NEVER_US = 2**62
NUM_FED = 2
"""Windows fed at the same time: the one that is asked about next, and the one after it."""


@dataclass(frozen=True)
class LiveCounts:
    """What became of the frames and windows of a session."""

    frames: Mapping[FrameStatus, int]
    missing: int
    """Slots of windows for which no frame came."""
    windows: int
    """That have ended."""
    asked: int
    skipped: int
    """Windows not asked about since nothing had changed."""
    dropped: int
    """Windows not asked about since a newer one ended before their turn."""
    unread: int
    """Windows not asked about since too many answers waited to be read."""
    lost: int = 0
    """Windows dropped since a frame of theirs was lost on its way; see `LiveSession.lose`."""


class LiveSession:
    """The live questions about one camera. May be used from several threads.

    Feeding never waits for the target. Frames that wait to be fed are dropped from feeding, never
    from their window, when the question about them comes first.
    """

    def __init__(
        self,
        session: Session,
        windows: Windows,
        *,
        when: When | None = None,
        prefill: bool = True,
        rehearse: bool = True,
    ) -> None:
        """``when`` decides which windows standing questions are asked about; all, if not given.

        Without ``prefill`` the target gets each window as a whole, with its question: it is what
        feeding is compared with. Standing questions ``rehearse`` in the time that the engine has
        left (`Sources.rehearsals`), where windows are fed.
        """
        num_frames = session.target.view.num_frames
        if num_frames is None or session.key is None:
            raise LiveError(
                "live questions are about a camera's frames: take a target that looks at video,"
                " and name the camera with headstart.session(name)"
            )
        self.windows = windows
        self._session, self._target, self._key = session, session.target, session.key
        self._is_fed = prefill and self._target.keeps_prefixes
        self._rehearses = rehearse and self._is_fed and self._target.rehearses
        self._num_frames = num_frames
        self._when: When = when or Always()
        self._lock = RLock()
        self._growing = GrowingWindows(windows, num_frames)
        self._placed: Counter[FrameStatus] = Counter()
        self._num_windows = self._num_skipped = self._num_lost = 0
        # Written in the engine's event loop only, and under the lock, since others read them.
        self._standing: list[StandingQuestion] = []
        self._latest: Window | None = None
        # From here on, used in that loop only.
        self._current: tuple[Window, ...] = ()
        self._lanes: dict[int, PrefillLane] = {}
        self._first_frame = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._is_ended = False
        self._is_closed = False

    def feed(
        self, frame: NDArray[np.uint8], time_us: int, events: Events | None = None
    ) -> FrameStatus:
        """Take a frame, ``time_us`` on the camera's clock, and the events since the last one."""
        with self._lock:
            now_s = time.monotonic()
            self._when.note(time_us, events)
            landing = self._growing.land(frame, time_us, now_s, events)
            self._placed[landing.placement] += 1
            if landing.placement is FrameStatus.TAKEN or landing.ended:
                self._session.loop.call(self._landed, landing)
        return landing.placement

    def lose(self, time_us: int) -> None:
        """A frame of this time will not come: the windows that it falls into are dropped, whole.

        Without this a window is asked about with the frames that it has.
        """
        with self._lock:
            landing = self._growing.lose(time_us)
            self._num_lost += len(landing.lost)
            self._session.loop.call(self._landed, landing)

    def end(self) -> None:
        """No frame comes any more: windows that still grow end as they are."""
        with self._lock:
            ended = self._growing.end_before(NEVER_US)
            self._session.loop.call(self._landed, FrameEffect(FrameStatus.LATE, (), ended))
            self._session.loop.call(self._end_standing)

    def ask(
        self,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
    ) -> WindowAnswer:
        """Ask about the oldest window whose time is not over, with the frames that have landed.

        Time is the camera's: it ends with the newest frame. Before any frame, wait for the first.
        """
        asked = WindowQuestion(question, max_tokens, schema)
        return self._session.loop.submit(self._ask(asked)).result()

    async def ask_async(
        self,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
    ) -> WindowAnswer:
        """As `ask`, from any event loop. Cancelling it cancels the work."""
        asked = WindowQuestion(question, max_tokens, schema)
        return await asyncio.wrap_future(self._session.loop.submit(self._ask(asked)))

    def standing(
        self,
        question: str,
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        on_shown: Callable[[Shown], None] | None = None,
        on_answer: Callable[[Window, Answer], None] | None = None,
    ) -> StandingQuestion:
        """Ask about every window when it ends; iterate over what this returns for the answers.

        ``on_shown`` gets the words of an answer as they come, drafted ones before they are certain,
        and ``on_answer`` a window and the answer about it: in a thread of headstart's, where they
        must return at once.
        """
        return self.ask_every(WindowQuestion(question, max_tokens, schema, on_shown, on_answer))

    def ask_every(self, asked: WindowQuestion) -> StandingQuestion:
        """The same, of a question that is already put together."""
        standing = StandingQuestion(self._session, asked, self._lock)
        self._session.loop.call(self._begin_standing, standing)
        return standing

    @property
    def counts(self) -> LiveCounts:
        with self._lock:
            standing = [each.counts for each in self._standing]
            return LiveCounts(
                dict(self._placed),
                self._growing.num_missing,
                self._num_windows,
                sum(each.asked for each in standing),
                self._num_skipped,
                sum(each.dropped for each in standing),
                sum(each.unread for each in standing),
                self._num_lost,
            )

    @property
    def held_bytes(self) -> int:
        """Memory of the frames and events in windows that grow, wait, or are asked about."""
        with self._lock:
            held = [*self._growing.held, *(() if self._latest is None else (self._latest,))]
            held += [window for standing in self._standing for window in standing.held]
        return sum({id(array): array.nbytes for one in held for array in one.arrays()}.values())

    def close(self) -> None:
        self._session.loop.call(self._close)

    def _landed(self, landing: FrameEffect) -> None:
        if self._is_closed:
            return
        if landing.growing or landing.ended:
            self._first_frame.set()
        for number in landing.lost:
            if (lane := self._lanes.pop(number, None)) is not None:
                self._target.feeder.withdraw(lane)
        for window in landing.ended:
            self._end_window(window)
        # The clock may have ended a window that this landing still saw grow.
        last = -1 if self._latest is None else self._latest.number
        self._current = tuple(window for window in landing.growing if window.number > last)
        for window in self._current[:NUM_FED]:
            if self._is_wanted(window):
                self._offer(window)
        self._wait_for_the_end()

    def _end_window(self, window: Window) -> None:
        has_standing = self._has_standing
        if has_standing:
            self._withdraw(window)
        with (
            self._lock
        ):  # whoever reads the counts finds a window and what became of it, or neither
            self._num_windows += 1
            self._latest = window
            if has_standing and self._is_wanted(window):
                self._when.asked(window.start_us, window.stop_us)
                for standing in self._standing:
                    standing.offer(window)
            elif has_standing:
                self._num_skipped += 1
        if not has_standing:
            self._offer(window)  # for a question that may come

    @property
    def _has_standing(self) -> bool:
        return any(standing.is_open for standing in self._standing)

    def _is_wanted(self, window: Window) -> bool:
        if not self._has_standing:
            return True
        with self._lock:
            return self._when.is_wanted(window.start_us, window.stop_us)

    def _offer(self, window: Window) -> None:
        if self._is_fed:
            for number in [number for number in self._lanes if number < window.number - NUM_FED]:
                self._target.feeder.withdraw(self._lanes.pop(number))
            per_item = self._target.view.frames_per_item or 1
            lane = self._lanes.get(window.number)
            if lane is None:
                lane = PrefillLane(self._key, self._session.options, per_item)
                lane.on_fed = partial(self._rehearse, window.number)
                self._lanes[window.number] = lane
            with self._lock:
                urgency = self._when.urgency
            self._target.feeder.offer(lane, window.frames, window.times_us, urgency)

    def _rehearse(self, number: int) -> None:
        """All that has landed of a window is computed: its questions may be answered early."""
        window = next(iter(self._current), None)  # the one that is asked about next
        if not self._rehearses or window is None or window.number != number:
            return
        per_item = self._target.view.frames_per_item or 1
        slot, num_slots = window.slot, self._num_frames
        if len(window.frames) % per_item or slot >= num_slots - 1 or not self._is_wanted(window):
            return
        landed_us, landed_s = window.times_us[-1], window.landed_s
        after_s = [
            max(0, window.landing_us(each, num_slots) - landed_us) / 1e6
            for each in (slot + per_item, num_slots - 1)
        ]
        due = DueFrames(landed_s + min(after_s), landed_s + after_s[1])
        for standing in self._standing:
            standing.rehearse(window, due)

    def _withdraw(self, window: Window) -> None:
        if (lane := self._lanes.pop(window.number, None)) is not None:
            self._target.feeder.withdraw(lane)

    def _wait_for_the_end(self) -> None:
        """End the oldest window by the clock, should the frames after it not come."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._lock:
            first_end = self._growing.first_end
        if first_end is not None:
            stop_us, seconds = first_end
            delay_s = seconds + PATIENCE_S
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay_s, self._end_by_the_clock, stop_us)

    def _end_by_the_clock(self, stop_us: int) -> None:
        with self._lock:
            ended = self._growing.end_before(stop_us)
        self._landed(FrameEffect(FrameStatus.LATE, self._current, ended))

    async def _ask(self, asked: WindowQuestion) -> WindowAnswer:
        await self._first_frame.wait()
        with self._lock:
            window = self._growing.asked_about
        if window is None:
            raise LiveError("the session ended before any frame: begin another one")
        return await asked.answer(self._session, window)

    def _begin_standing(self, standing: StandingQuestion) -> None:
        with self._lock:
            self._standing.append(standing)
        if self._is_ended:
            standing.end()

    def _end_standing(self) -> None:
        self._is_ended = True
        self._first_frame.set()  # who still waits for one is told
        for standing in self._standing:
            standing.end()

    def _close(self) -> None:
        self._is_closed = self._is_ended = True
        self._first_frame.set()
        if self._timer is not None:
            self._timer.cancel()
        for lane in self._lanes.values():
            self._target.feeder.withdraw(lane)
        for standing in self._standing:
            standing.cancel()
        # Whoever keeps the session for its counts keeps no frames.
        with self._lock:
            self._growing.clear()
            self._latest = None
        self._current = ()
        self._lanes.clear()
