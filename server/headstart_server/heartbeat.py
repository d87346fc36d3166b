"""Checks that the engine responds, by calling it every two seconds.

vLLM's own health check reads a flag, which does not change when the engine hangs. The call made
here passes through the loop in which the engine computes answers.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

EVERY_S = 2.0


class Heartbeat:
    """Used from one event loop only."""

    def __init__(
        self,
        beat: Callable[[], Awaitable[object]],
        deadline_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._beat = beat
        self._clock = clock
        self._deadline_s = deadline_s
        # Often enough that one slow response does not miss the deadline.
        self._every_s = min(EVERY_S, deadline_s / 4)
        self._last_s = self._clock()

    @property
    def age_s(self) -> float:
        """Time since the engine last responded."""
        return self._clock() - self._last_s

    @property
    def is_alive(self) -> bool:
        """Whether the engine has responded within the deadline."""
        return self.age_s <= self._deadline_s

    async def run(self) -> None:
        """Call the engine for ever, one call at a time: calls to a hung engine do not pile up."""
        while True:
            with contextlib.suppress(Exception):  # a failed call is no response
                await self._beat()
                self._last_s = self._clock()
            await asyncio.sleep(self._every_s)
