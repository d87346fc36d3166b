"""A camera's pictures on their way into its windows, whoever brings them.

A window is whole, or lost. Where a picture does not fit, all windows that it falls into are lost,
counted by the reason, and what comes is discarded until the next window begins. Where a window
begins, memory, the clock and the tenant's rates are checked, and a request is charged.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from headstart.live.session import LiveSession
from headstart.live.windows import WindowGrid
from headstart.media.events import Events
from headstart_events.live.events_beside import SmallSimulator
from headstart_server.live.camera_resources import TenantContext
from headstart_server.quota import Bucket
from headstart_server.refusal import RefusedError

MAX_AT_ONCE = 32
"""Windows that may begin at once: short recordings pass as fast as they are sent."""
MAX_SPEED = 2.0
"""After that the times of a camera's pictures may run so many times as fast as the clock."""


class LossReason(StrEnum):
    """Why a window was lost."""

    FLOOD = "flood"
    """Pictures came faster than they are decoded, or than the limit, or windows than the clock."""
    RATE = "rate"
    """The tenant's requests or tokens a minute were used up."""
    MEMORY = "memory"
    """The tenant's media, or all, held too much memory."""
    UNREADABLE = "unreadable"
    """A picture or events of it could not be read."""
    KEY = "key"
    """An encoded picture came without the key picture that it builds on."""


class WindowIntake:
    """Used from one event loop only. Those for a socket and for a source derive from it."""

    def __init__(
        self,
        context: TenantContext,
        live: LiveSession,
        *,
        simulate: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """With ``simulate``, events are computed from the pictures."""
        self._context, self._live, self._clock = context, live, clock
        self._simulator = SmallSimulator() if simulate else None
        self._grid: WindowGrid | None = None
        self._refused_until_us = -1
        """Until then, what comes is discarded."""
        self._speed = Bucket(MAX_SPEED * 60 / live.windows.step_s, clock(), MAX_AT_ONCE)
        self._charged = -1
        """The newest window that was charged."""
        self._held_bytes = 0
        self._placed: Counter[str] = Counter()
        self.reasons: Counter[LossReason] = Counter()
        """Why windows were lost; one reason for all that were lost at once."""

    @property
    def placed(self) -> Mapping[str, int]:
        """Pictures that came to no window, by their fate."""
        return self._placed

    async def run(self) -> None:
        """Take pictures in, until no more come. Raises what ends the camera."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back the memory that is counted for the camera's frames."""
        self._hold(0)

    def _grid_with(self, time_us: int) -> WindowGrid:
        """The camera's windows, the first of which begins with its first picture."""
        if self._grid is None:
            self._grid = self._live.windows.grid(time_us)
        return self._grid

    def _admit(self, time_us: int, find_fault: Callable[[], LossReason | None]) -> bool:
        """Whether a picture that comes may go on; else it is discarded, its windows are lost."""
        grid = self._grid_with(time_us)
        if time_us >= self._refused_until_us:
            after = grid.holding(time_us).stop
            if (why := find_fault() or self._charge(after - 1)) is None:
                return True
            self.reasons[why] += 1
            self._refused_until_us = grid.start_us(after)
            self._lose(time_us)
        self._placed["discarded"] += 1
        return False

    def _lose(self, time_us: int) -> None:
        """Lose the windows of a picture that has just come."""
        self._live.lose(time_us)

    def _charge(self, number: int) -> LossReason | None:
        """Charge a window as a request, once; returns why it may not begin, if it may not."""
        if number <= self._charged:
            return None
        if self._context.admission.memory.is_high:
            return LossReason.MEMORY
        now_s = self._clock()
        if self._speed.wait_s(1, now_s) > 0:
            return LossReason.FLOOD
        try:
            self._context.admission.quota.admit(self._context.tenant)
        except RefusedError:
            return LossReason.RATE
        self._speed.take(1, now_s)
        self._charged = number
        return None

    def _too_much_held(self) -> LossReason | None:
        """Whether decoded media hold so much memory that no more may be decoded."""
        try:
            self._context.room.check(self._context.tenant)
        except RefusedError:
            return LossReason.MEMORY
        return None

    def _hold(self, num_bytes: int) -> None:
        """Count so much memory as the tenant's, in place of what was counted before."""
        self._context.room.hold(self._context.tenant, num_bytes - self._held_bytes)
        self._held_bytes = num_bytes

    def _feed(self, frame: NDArray[np.uint8], time_us: int, events: Events | None = None) -> None:
        """In a thread: large pictures and many events take a while."""
        if self._simulator is not None:
            events = self._simulator.see(time_us, frame)
        self._live.feed(frame, time_us, events)
