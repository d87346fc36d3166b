"""The pace at which recorded frames are shown: each when its time has come."""

import threading
import time

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
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def wait_until(self, time_us: int) -> bool:
        """Wait until this time has come, counted from the first call's; False where stopped."""
        now_s, time_s = time.monotonic(), time_us / 1e6 / self._speed
        if self._start_s is None:
            self._start_s = now_s - time_s
        return not self._wait(max(0.0, self._start_s + time_s - now_s))

    def sleep(self, seconds: float) -> None:
        """Wait so long, at most until stopped."""
        self._wait(seconds)

    def restart(self) -> None:
        """Count from the next call on."""
        self._start_s = None

    def stop(self) -> None:
        """End every wait, now and later. From any thread."""
        self._stopped.set()

    def _wait(self, seconds: float) -> bool:
        return self._stopped.wait(seconds)
