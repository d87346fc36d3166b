"""Where a window of a camera begins: whether memory, the clock and the tenant's rates allow it."""

import time
from collections.abc import Callable

from headstart.live.windows import WindowGrid, Windows
from headstart_server.live.gate import Gate
from headstart_server.live.losses import Why
from headstart_server.quota import Bucket
from headstart_server.refusal import RefusedError

MAX_AT_ONCE = 32
"""Windows that may begin at once: short recordings pass as fast as they are sent."""
MAX_SPEED = 2.0
"""After that the times of a camera's pictures may run so many times as fast as the clock."""


class WindowAdmission:
    """Charges each window as a request, once. Used from one event loop only."""

    def __init__(
        self, gate: Gate, windows: Windows, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gate, self._clock = gate, clock
        self._speed = Bucket(MAX_SPEED * 60 / windows.step_s, clock(), MAX_AT_ONCE)
        self._charged = -1
        """The newest window that was charged."""

    def refusal(self, grid: WindowGrid, time_us: int) -> Why | None:
        """Why a picture's newest window may not begin; none if it may, or has begun before."""
        number = grid.holding(time_us).stop - 1
        if number <= self._charged:
            return None
        if self._gate.entrance.memory.is_high:
            return Why.MEMORY
        now_s = self._clock()
        if self._speed.wait_s(1, now_s) > 0:
            return Why.FLOOD
        try:
            self._gate.entrance.quota.admit(self._gate.tenant)
        except RefusedError:
            return Why.RATE
        self._speed.take(1, now_s)
        self._charged = number
        return None
