"""A standing question: asked about every window of a camera, answered one after the other."""

import asyncio
import queue
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from threading import RLock

from headstart.engine.session import Session
from headstart.live.rehearsing import DueFrames, WindowRehearsals
from headstart.live.window_question import WindowAnswer, WindowQuestion
from headstart.live.windows import Window

LOOK_S = 1.0
"""How often a reader that waits looks whether there is still an engine."""
MAX_UNREAD = 64
"""Answers that wait to be read. Nothing more is asked until one is: no answer is lost."""


@dataclass
class StandingCounts:
    """What became of the windows."""

    asked: int = 0
    dropped: int = 0
    unread: int = 0


class StandingQuestion:
    """An iterator over the answers; it ends when the session has ended.

    At most one window is asked about at a time. Of those that end meanwhile the newest is next and
    the others are dropped, so a target that is too slow answers about fewer windows, each of them
    as soon as it can.
    """

    def __init__(self, session: Session, asked: WindowQuestion, lock: RLock) -> None:
        """``lock`` guards what its session tells other threads: what is counted and held."""
        self.counts = StandingCounts()
        self._lock = lock
        self._session = session
        self._asked = asked
        self._answers: queue.SimpleQueue[WindowAnswer | BaseException | None] = queue.SimpleQueue()
        self._news = asyncio.Event()
        """Set, in the loop, when something was put into the queue."""
        self._waiting: Window | None = None
        self._under_way: Window | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False
        self._rehearsals = WindowRehearsals(session, asked)

    @property
    def is_open(self) -> bool:
        return not self._is_ending

    def __iter__(self) -> Iterator[WindowAnswer]:
        return self

    def __next__(self) -> WindowAnswer:
        """Wait for the next answer. Raises what the target raised."""
        answer = self._read(self._next())
        if answer is None:
            raise StopIteration
        return answer

    def __aiter__(self) -> AsyncIterator[WindowAnswer]:
        return self

    async def __anext__(self) -> WindowAnswer:
        """As `__next__`, in the engine's event loop, where no thread may wait."""
        while self._answers.empty():
            self._news.clear()
            await self._news.wait()
        answer = self._read(self._answers.get())
        if answer is None:
            raise StopAsyncIteration
        return answer

    def _read(self, answer: WindowAnswer | BaseException | None) -> WindowAnswer | None:
        if answer is None or isinstance(answer, BaseException):
            self._answers.put(None)  # for another reader, and for whoever asks again
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _next(self) -> WindowAnswer | BaseException | None:
        while True:
            try:
                return self._answers.get(timeout=LOOK_S)
            except queue.Empty:
                if self._session.loop.is_closed:
                    return None  # the engine was closed before its cameras

    def close(self) -> None:
        """Ask no more; an answer under way is cancelled. From any thread."""
        self._session.loop.call(self.cancel)
        self._answers.put(None)  # the engine, and its loop with it, may have ended before

    @property
    def held(self) -> tuple[Window, ...]:
        """The windows whose frames are still needed. From any thread."""
        with self._lock:
            return tuple(one for one in (self._waiting, self._under_way) if one is not None)

    def rehearse(self, window: Window, due: DueFrames) -> None:
        """A window's frames so far are computed. In the engine's event loop, as all that follows.

        While an answer is under way nothing is rehearsed: it may use the engine's time.
        """
        if self._task is None and not self._is_ending:
            self._rehearsals.fed(window, due)

    def offer(self, window: Window) -> None:
        """A window has ended."""
        self._rehearsals.ended()
        if self._is_ending:
            return
        with self._lock:
            if self._answers.qsize() >= MAX_UNREAD:
                self.counts.unread += 1
                return
            if self._waiting is not None:
                self.counts.dropped += 1
            self._waiting = window
            self._go_on()

    def end(self) -> None:
        """No window comes any more: end after the last answer."""
        self._is_ending = True
        self._go_on()

    def cancel(self) -> None:
        self._waiting = None
        self._rehearsals.ended()
        if self._task is not None:
            self._task.cancel()
        self.end()

    def _go_on(self) -> None:
        if self._task is not None:
            return
        if self._waiting is not None:
            with self._lock:
                window, self._waiting = self._waiting, None
                self._under_way = window
                self.counts.asked += 1
            self._task = asyncio.create_task(self._answer(window))
            # A task that is cancelled before it has begun runs nothing of its own.
            self._task.add_done_callback(self._answered)
        elif self._is_ending:
            self._put(None)

    def _put(self, answer: WindowAnswer | BaseException | None) -> None:
        self._answers.put(answer)
        self._news.set()

    async def _answer(self, window: Window) -> None:
        try:
            answer = await self._asked.answer(self._session, window)
            self._put(answer)
            self._rehearsals.answered(window.number, answer.answer.token_ids)
        except Exception as error:
            self._is_ending = True
            self._waiting = None
            self._put(error)

    def _answered(self, task: "asyncio.Task[None]") -> None:
        self._task = self._under_way = None
        if task.cancelled():
            self._is_ending, self._waiting = True, None
        self._go_on()
