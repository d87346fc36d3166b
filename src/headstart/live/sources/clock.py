"""One clock for a camera that is connected many times."""

import time
from collections.abc import Callable

MAX_APART_US = 5_000_000


class SourceClock:
    """Gives every frame a time in microseconds since the camera's first, always increasing.

    One rule: the times that the camera states are kept, from an anchor on. The first frame of each
    connection is an anchor: it has the time at which it arrived. A frame whose stated time and
    whose arrival have moved five seconds apart since the last anchor (the camera's clock jumped, or
    runs slow) is an anchor too. A frame without a stated time has the time at which it arrived.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._start_s: float | None = None
        self._apart_us: int | None = None
        """How far stated times were from arrival at the anchor."""
        self._shift_us = 0
        self._last_us = -1

    def reconnected(self) -> None:
        """Say that the next frame is a new connection's first."""
        self._apart_us = None

    def stamp(self, stated_us: int | None) -> int:
        """The time of a frame that has just arrived."""
        now_s = self._now_s()
        if self._start_s is None:
            self._start_s = now_s
        time_us = arrived_us = round((now_s - self._start_s) * 1e6)
        if stated_us is not None:
            apart_us = stated_us - arrived_us
            if self._apart_us is None or abs(apart_us - self._apart_us) > MAX_APART_US:
                self._apart_us = apart_us
                self._shift_us = max(arrived_us, self._last_us + 1) - stated_us
            time_us = stated_us + self._shift_us
        self._last_us = max(self._last_us + 1, time_us)
        return self._last_us
