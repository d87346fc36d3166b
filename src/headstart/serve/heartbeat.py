"""Whether the engine answers: it is asked for a sign of life again and again.

vLLM's own health check reads a flag, which stays as it is when the engine hangs. The sign asked
for here has to pass the loop that also computes the answers.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

EVERY_S = 2.0


class Heartbeat:
    """Used from one event loop only."""

    def __init__(self, beat: Callable[[], Awaitable[object]], deadline_s: float) -> None:
        self._beat = beat
        self._deadline_s = deadline_s
        # Often enough that one slow beat within the deadline is no death.
        self._every_s = min(EVERY_S, deadline_s / 4)
        self._last_s = time.monotonic()

    @property
    def age_s(self) -> float:
        """Time since the last sign of life."""
        return time.monotonic() - self._last_s

    @property
    def is_heard(self) -> bool:
        """Whether the last sign of life is no older than the deadline."""
        return self.age_s <= self._deadline_s

    async def listen(self) -> None:
        """Ask for ever. One question at a time: a hung engine is not asked again and again."""
        while True:
            with contextlib.suppress(Exception):  # no sign of life is what it says
                await self._beat()
                self._last_s = time.monotonic()
            await asyncio.sleep(self._every_s)
