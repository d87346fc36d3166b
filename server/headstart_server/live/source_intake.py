"""The pictures of a camera that the server reads itself, on their way into windows.

A thread reads the camera; what it sends is decoded in a confined process of its own. Where a
picture's window may not begin, because of the tenant's rates or of memory, all windows that the
picture falls into are lost, whole, and pictures are discarded until the next window begins. Where
the server is too slow for the camera, pictures are left out, oldest first.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from headstart.live.session import LiveSession
from headstart.live.sources.source import Arrival, Source, SourceCounts
from headstart.live.windows import WindowGrid
from headstart_events.live.events_beside import SmallSimulator
from headstart_server.live.frame_memory import FrameMemory
from headstart_server.live.gate import Gate
from headstart_server.live.losses import Why
from headstart_server.live.window_admission import WindowAdmission
from headstart_server.refusal import RefusedError

MAX_WAITING = 4
"""Pictures of one camera that wait to be taken: decoded, so they are large."""
JOIN_S = 15.0
"""How long `shut` waits for the thread; longer than a source takes to end its own."""


class SourceIntake:
    """Used from one event loop only, but for `shut`."""

    def __init__(self, gate: Gate, live: LiveSession, source: Source, *, simulate: bool) -> None:
        self._gate, self._live, self._source = gate, live, source
        self._simulator = SmallSimulator() if simulate else None
        self._admission = WindowAdmission(gate, live.windows)
        self._memory = FrameMemory(gate, live)
        self._grid: WindowGrid | None = None
        self._refused_until_us = -1
        """Until then, what comes is discarded."""
        self._num_discarded = 0
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._read, name=f"headstart camera {source.name}", daemon=True
        )
        self.newest: NDArray[np.uint8] | None = None
        """The newest picture, also one that was discarded."""
        self.reasons: Counter[Why] = Counter()

    @property
    def source(self) -> SourceCounts:
        """What has happened to the camera's connections."""
        return self._source.counts

    @property
    def placed(self) -> Mapping[str, int]:
        """Pictures that came to no window: discarded with it, or left out by a slow server."""
        fates = {"discarded": self._num_discarded, "left_out": self._source.counts.dropped}
        return {fate: number for fate, number in fates.items() if number}

    async def run(self) -> None:
        """Read the camera to its end; raises if it cannot be connected to."""
        self._thread.start()
        await self._over

    def close(self) -> None:
        """Take no more; `shut` ends the thread."""
        self._is_closed = True
        self.newest = None
        self._memory.close()

    def shut(self) -> None:
        """End the connection, the thread and the process that decodes. Blocks: in a thread."""
        self._source.close()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)

    def _read(self) -> None:
        """In the thread."""
        error: Exception | None = None
        try:
            for arrival in self._source.arrivals():
                if self._is_admitted(arrival):
                    self._feed(arrival)
        except Exception as raised:  # told to the client, or noted in the log
            error = raised
        with suppress(RuntimeError):  # the server has ended, and its event loop with it
            self._loop.call_soon_threadsafe(self._end, error)

    def _is_admitted(self, arrival: Arrival) -> bool:
        """In the thread, which waits for the event loop: what is counted is counted there."""
        admitted: Future[bool] = Future()
        self._loop.call_soon_threadsafe(lambda: admitted.set_result(self._admit(arrival)))
        return admitted.result()

    def _feed(self, arrival: Arrival) -> None:
        """In the thread: large pictures take a while."""
        events = None
        if self._simulator is not None:
            events = self._simulator.see(arrival.time_us, arrival.frame)
        self._live.feed(arrival.frame, arrival.time_us, events)

    def _admit(self, arrival: Arrival) -> bool:
        if self._is_closed:
            return False
        self.newest = arrival.frame
        self._memory.count(besides=(MAX_WAITING + 1) * arrival.frame.nbytes)
        if self._grid is None:
            self._grid = self._live.windows.grid(arrival.time_us)
        if arrival.time_us < self._refused_until_us:
            self._num_discarded += 1
            return False
        why = self._refusal(self._grid, arrival.time_us)
        if why is None:
            return True
        self.reasons[why] += 1
        self._num_discarded += 1
        self._refused_until_us = self._grid.start_us(self._grid.holding(arrival.time_us).stop)
        self._live.lose(arrival.time_us)
        return False

    def _refusal(self, grid: WindowGrid, time_us: int) -> Why | None:
        try:
            self._gate.room.check(self._gate.tenant)
        except RefusedError:
            return Why.MEMORY
        return self._admission.refusal(grid, time_us)

    def _end(self, error: Exception | None) -> None:
        if self._over.done():
            return  # nobody waits any more
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)
