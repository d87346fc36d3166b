"""All open connections: how many may wait for a request, and for how long.

A connection that has sent no whole request yet has shown no key, so no limit of a tenant's counts
it. Those that have waited longest make room for new ones.
"""

import asyncio
import time
from collections.abc import Callable

from headstart_server import metrics
from headstart_server.connections.connection import Connection

MAX_WAITING = 1024
"""Connections at once without a request under way. Of more, the one that has waited longest is
ended; a client that keeps connections open sees the same when it has been idle for too long."""
HEAD_S = 30.0
"""Time for a client to send the head of a request, from the connection or the last answer on."""
UNREAD_S = 60.0
"""Time for a client to read what the server's buffers hold for it, or `UNREAD_BYTES` of it."""
UNREAD_BYTES = 1 << 20
LOOK_S = 1.0


class OpenConnections:
    """Used from one event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, float] = {}
        """Since when, the longest first."""
        self._unread: dict[Connection, tuple[int, float]] = {}
        """What the client had not read yet, and when."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def num_waiting(self) -> int:
        """Those without a request under way."""
        return len(self._waiting)

    def wait(self, connection: Connection) -> None:
        """It has no request under way from now on."""
        self._open.add(connection)
        self._waiting.pop(connection, None)
        self._waiting[connection] = self.clock()
        if len(self._waiting) > MAX_WAITING:
            self._end(next(iter(self._waiting)), "connections")

    def work(self, connection: Connection) -> None:
        """It has a request under way, or is a socket."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)
        self._unread.pop(connection, None)

    async def watch(self) -> None:
        """End those that take too long, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        now_s = self.clock()
        for connection in list(self._open):
            self._look_whether_read(connection, now_s)
        for connection, since_s in list(self._waiting.items()):
            if now_s - since_s <= HEAD_S:
                break  # the others wait for less
            if connection in self._unread:
                self.wait(connection)  # it has not got its last answer yet
            else:
                self._end(connection, "slow head")

    def _look_whether_read(self, connection: Connection, now_s: float) -> None:
        """What is closed politely, too, stays open until the client has read everything."""
        num_bytes = connection.transport.get_write_buffer_size()
        if not num_bytes or not (connection.is_unread or connection.transport.is_closing()):
            self._unread.pop(connection, None)
            return
        before, since_s = self._unread.setdefault(connection, (num_bytes, now_s))
        if num_bytes <= before - UNREAD_BYTES:
            self._unread[connection] = (num_bytes, now_s)
        elif now_s - since_s > UNREAD_S:
            self._end(connection, "unread")

    def _end(self, connection: Connection, reason: str) -> None:
        metrics.TURNED_AWAY.labels(reason).inc()
        self.remove(connection)
        connection.transport.abort()
