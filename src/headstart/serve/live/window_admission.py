"""Where a window of a camera begins: whether memory and the tenant's rates allow it."""

from headstart.serve.live.gate import Gate
from headstart.serve.live.losses import Why
from headstart.serve.live.window_grid import WindowGrid
from headstart.serve.refusal import RefusedError


class WindowAdmission:
    """Charges each window as a request, once. Used from one event loop only."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._charged = -1
        """The newest window that was charged."""

    def refusal(self, grid: WindowGrid, time_us: int) -> Why | None:
        """Why a picture's newest window may not begin; none if it may, or has begun before."""
        number = grid.newest(time_us)
        if number <= self._charged:
            return None
        if self._gate.entrance.memory.is_high:
            return Why.MEMORY
        try:
            self._gate.entrance.quota.admit(self._gate.tenant)
        except RefusedError:
            return Why.RATE
        self._charged = number
        return None
