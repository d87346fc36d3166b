"""How fast a camera is read. Where it sends more, it waits, as TCP has it do."""

import time
from collections.abc import Callable

from headstart.live.sources.confined.shares import Share, Shares

MAX_BYTES_S = 32 << 20
"""Of one camera: what H.264 allows for pictures of 4096x2304, and more than JPEGs of them need."""
LOOK_CPU_S = 0.01
"""After so much processor time the thread asks whether any is left to it."""
PAUSE_S = 0.1
"""So long it waits before it asks again."""


class Flow:
    """Of one connection. Used by the thread that reads it."""

    def __init__(
        self,
        wait: Callable[[float], bool],
        share: Share | None = None,
        max_bytes_s: float = MAX_BYTES_S,
        clock: Callable[[], float] = time.monotonic,
        thread_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """``wait`` waits for so many seconds; True where nobody reads any more."""
        self._wait, self._max_bytes_s = wait, max_bytes_s
        self._clock, self._thread_clock = clock, thread_clock
        self._share = share or Shares(1.0).share()
        self._left, self._seen_s = max_bytes_s, clock()
        self._used_s: float | None = None

    def passed(self, num_bytes: int) -> None:
        """So many bytes were read; wait where they were too many. A second's worth is free."""
        now_s = self._clock()
        self._left += (now_s - self._seen_s) * self._max_bytes_s
        self._left, self._seen_s = min(self._left, self._max_bytes_s) - num_bytes, now_s
        if self._left < 0:
            self._wait(-self._left / self._max_bytes_s)
        self._rest()

    def _rest(self) -> None:
        """Wait while the thread has used its share of the processors."""
        used_s = self._thread_clock()
        more_s = 0.0 if self._used_s is None else used_s - self._used_s
        if self._used_s is not None and more_s < LOOK_CPU_S:
            return
        self._used_s = used_s
        while not self._share.spend(more_s):
            if self._wait(PAUSE_S):
                return
            more_s = 0.0
