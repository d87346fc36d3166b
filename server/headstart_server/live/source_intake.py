"""The pictures of a camera that the server reads itself, on their way into windows.

A thread reads the camera; what it sends is decoded in a confined process of its own. Where the
server is too slow for the camera, pictures are left out, oldest first.
"""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from headstart.live.session import LiveSession
from headstart.live.sources.source import Arrival, Source
from headstart_server.live.camera_resources import TenantContext
from headstart_server.live.window_intake import WindowIntake

MAX_WAITING = 4
"""Pictures of one camera that wait to be taken: decoded, so they are large."""
JOIN_S = 15.0
"""How long `shut` waits for the thread; longer than a source takes to end its own."""
LOOK_S = 1.0
"""How often a thread that waits for the event loop looks whether there still is one."""


class SourceIntake(WindowIntake):
    """Used from one event loop only, but for `shut`."""

    def __init__(
        self, context: TenantContext, live: LiveSession, source: Source, *, simulate: bool
    ) -> None:
        super().__init__(context, live, simulate=simulate)
        self._source = source
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._read, name=f"headstart camera {source.name}", daemon=True
        )
        self.newest: NDArray[np.uint8] | None = None
        """The newest picture, also one that was discarded."""

    @property
    def placed(self) -> Mapping[str, int]:
        """Pictures that came to no window: discarded with it, or left out by a slow server."""
        dropped = self._source.counts.dropped
        return {**self._placed, "left_out": dropped} if dropped else self._placed

    async def run(self) -> None:
        """Read the camera to its end; raises if it cannot be connected to."""
        self._thread.start()
        await self._over

    def close(self) -> None:
        """Take no more; `shut` ends the thread."""
        super().close()
        self._is_closed = True
        self.newest = None

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
                    self._feed(arrival.frame, arrival.time_us)
        except Exception as raised:  # told to the client, or noted in the log
            error = raised
        with suppress(RuntimeError):  # the server has ended, and its event loop with it
            self._loop.call_soon_threadsafe(self._end, error)

    def _is_admitted(self, arrival: Arrival) -> bool:
        """In the thread, which waits for the event loop: what is counted is counted there."""
        admitted: Future[bool] = Future()
        self._loop.call_soon_threadsafe(lambda: admitted.set_result(self._take(arrival)))
        while True:
            try:
                return admitted.result(LOOK_S)
            except TimeoutError:
                if not self._loop.is_running():
                    raise RuntimeError("the event loop has ended, and the camera with it") from None

    def _take(self, arrival: Arrival) -> bool:
        if self._is_closed:
            return False
        self.newest = arrival.frame
        self._hold(self._live.held_bytes + (MAX_WAITING + 1) * arrival.frame.nbytes)
        return self._admit(arrival.time_us, self._too_much_held)

    def _end(self, error: Exception | None) -> None:
        if self._over.done():
            return  # nobody waits any more
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)
