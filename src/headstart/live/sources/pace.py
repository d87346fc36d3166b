"""The pace at which recorded frames are shown: each when its time has come."""

import threading
import time
from collections.abc import Callable

from headstart.errors import SourceError

MAX_SPEED = 1000.0


class Pace:
    """Lets time pass as fast as it does, or ``speed`` times as fast."""

    def __init__(self, speed: float = 1.0) -> None:
        if not 0 < speed <= MAX_SPEED:
            raise SourceError(f"a speed of {speed:g}; give one above 0, and at most {MAX_SPEED:g}")
        self._speed = speed
        self._stopped = threading.Event()
        self._start_s: float | None = None

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def wait_until(self, time_us: int) -> bool:
        """Wait until this time has come, counted from the first call's; False where stopped."""
        now_s, time_s = time.monotonic(), time_us / 1e6 / self._speed
        if self._start_s is None:
            self._start_s = now_s - time_s
        return not self.sleep(max(0.0, self._start_s + time_s - now_s))

    def sleep(self, seconds: float) -> bool:
        """Wait for so long; whether it was stopped."""
        return self._stopped.wait(seconds)

    def restart(self) -> None:
        """Count from the next call on."""
        self._start_s = None

    def stop(self) -> None:
        """End every wait, now and later. From any thread."""
        self._stopped.set()


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
