"""The memory of a camera's decoded frames, as it counts against its tenant's."""

from headstart.live.session import LiveSession
from headstart_server.live.gate import Gate


class FrameMemory:
    """Used from one event loop only. `close` gives back what is counted."""

    def __init__(self, gate: Gate, live: LiveSession) -> None:
        self._gate, self._live = gate, live
        self._held_bytes = 0

    def count(self, besides: int = 0) -> None:
        """Count what the camera's windows hold now, and so many bytes besides."""
        self._hold(self._live.held_bytes + besides)

    def close(self) -> None:
        """Count nothing any more."""
        self._hold(0)

    def _hold(self, num_bytes: int) -> None:
        self._gate.room.hold(self._gate.tenant, num_bytes - self._held_bytes)
        self._held_bytes = num_bytes
