"""A thread in which learners learn, one small bite after another."""

import os
import threading
from collections import OrderedDict
from contextlib import suppress

from headstart_research.ranker.learner import Learner

NICE = 19  # of the thread: it takes what time nobody else wants
CLOSING_S = 5.0


class Training:
    """One thread for all learners, each in its turn. Started with the first lesson.

    `ask`, `settle` and `close` may be called from any thread. None but `settle` waits for a lesson.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[int, Learner] = OrderedDict()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def ask(self, learner: Learner) -> None:
        with self._changed:
            if self._is_closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="headstart-ranker", daemon=True
                )
                self._thread.start()
            self._waiting.setdefault(id(learner), learner)
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until nothing is left to learn."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self._waiting)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSING_S)

    def _run(self) -> None:
        with suppress(OSError, AttributeError):
            # On Linux a thread has a priority of its own.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while (learner := self._next()) is not None:
            if not learner.take_bite():
                self._leave(learner)

    def _next(self) -> Learner | None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._waiting)
            if self._is_closed:
                return None
            key = next(iter(self._waiting))
            self._waiting.move_to_end(key)
            return self._waiting[key]

    def _leave(self, learner: Learner) -> None:
        with self._changed:
            if not learner.has_lessons:  # one may have come since it was asked
                self._waiting.pop(id(learner), None)
                self._changed.notify_all()
