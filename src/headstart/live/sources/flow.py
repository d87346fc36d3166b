"""How fast a camera is read. Where it sends more, it waits, as TCP has it do."""

import time
from collections.abc import Callable

MAX_BYTES_S = 32 << 20
"""Of one camera: what H.264 allows for pictures of 4096x2304, and more than JPEGs of them need."""


class Flow:
    """Of one connection. Used by the thread that reads it."""

    def __init__(
        self,
        wait: Callable[[float], object],
        max_bytes_s: float = MAX_BYTES_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``wait`` waits for so many seconds, or less."""
        self._wait, self._max_bytes_s, self._clock = wait, max_bytes_s, clock
        self._left, self._seen_s = max_bytes_s, clock()

    def passed(self, num_bytes: int) -> None:
        """So many bytes were read; wait where they were too many. A second's worth is free."""
        now_s = self._clock()
        self._left += (now_s - self._seen_s) * self._max_bytes_s
        self._left, self._seen_s = min(self._left, self._max_bytes_s) - num_bytes, now_s
        if self._left < 0:
            self._wait(-self._left / self._max_bytes_s)
