"""Connections before anything of a tenant's counts them: what one may cost, how many may wait.

A connection stands between a transport and what is spoken on it, HTTP first and then perhaps the
frames of a socket. Neither needs a key for its bytes to be parsed, so none may cost more than its
share: what arrives is handed on in small pieces, each in a turn of the event loop, and a connection
is read no further while a piece waits, while what is spoken has enough to do, and while the client
does not read what it was sent.

One that has sent no whole request yet has shown no key, so no limit of a tenant's counts it. Those
that have waited longest make room for new ones.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

from headstart_server import metrics
from headstart_server.quota import Bucket

PARTS_A_SECOND = 5000
"""Heads, headers, chunks and frames of one connection that are parsed; as many may come at once.
An ordinary request has about ten, a picture one."""

NAP_S = 0.05
"""After so long it is looked whether a client has waited for long enough."""

MAX_WAITING = 1024
"""Connections at once without a request under way. Of more, the one that has waited longest is
ended; a client that keeps connections open sees the same when it has been idle for too long."""
HEAD_S = 30.0
"""Time for a client to send the head of a request, from the connection or the last answer on."""
UNREAD_S = 60.0
"""Time for a client to read what the server's buffers hold for it, or `UNREAD_BYTES` of it."""
UNREAD_BYTES = 1 << 20
LOOK_S = 1.0


class Spoken(Protocol):
    """What is spoken on a connection. Its methods are those of an `asyncio.Protocol`."""

    @property
    def is_busy(self) -> bool:
        """Whether it wants nothing handed on yet."""

    @property
    def num_parts(self) -> int:
        """How many parts it has parsed so far."""

    def piece_of(self, held: bytes, start: int) -> int:
        """Where a piece of what is held ends that is parsed at once; perhaps behind its end."""

    def data_received(self, data: bytes) -> None:
        """Take one piece."""

    def eof_received(self) -> bool | None:
        """The client sends no more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""

    def pause_writing(self) -> None:
        """The client does not read."""

    def resume_writing(self) -> None:
        """It reads again."""


class Connection(asyncio.Protocol):
    """Used from one event loop only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        on_lost: Callable[["Connection"], None],
    ) -> None:
        self._loop, self._clock, self._on_lost = loop, clock, on_lost
        self._bucket = Bucket(60 * PARTS_A_SECOND, clock(), PARTS_A_SECOND)
        self._held, self._start = b"", 0
        """What has arrived, and how much of it is handed on."""
        self._turn: asyncio.Handle | None = None
        self._reads = True
        self._is_paused = False
        self._transport: Any = None
        self._spoken: Spoken | None = None
        self.is_unread = False
        """Whether the client does not read what it is sent."""

    def speak(self, spoken: Spoken) -> None:
        """From now on hand everything to this."""
        self._spoken = spoken

    def opened(self, transport: Any) -> "HeldTransport":
        """The transport for what is spoken: like this one, but that we decide when it is read."""
        self._transport = transport
        return HeldTransport(transport, self)

    @property
    def transport(self) -> Any:
        """The real one."""
        return self._transport

    def pause(self) -> None:
        """Hand nothing on until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self.go_on()

    def data_received(self, data: bytes) -> None:
        """Hand on the first piece now, where nothing waits."""
        self._held, self._start = self._held[self._start :] + data, 0
        if self._turn is None:
            self._hand_on()

    def go_on(self) -> None:
        """Hand on in the next turn, if there is anything and it may be."""
        if self._turn is None and not self._transport.is_closing():
            self._turn = self._loop.call_soon(self._hand_on)

    def _hand_on(self) -> None:
        self._turn = None
        spoken = self._spoken
        assert spoken is not None
        if self._transport.is_closing():
            self._held, self._start = b"", 0
            return
        if self._may_hand_on(spoken) and not self._owed_s:
            end = min(len(self._held), spoken.piece_of(self._held, self._start))
            piece, self._start = self._held[self._start : end], end
            before = spoken.num_parts
            try:
                spoken.data_received(piece)
            except BaseException:
                # A loop ends a connection over this itself only in its own call.
                self._transport.abort()
                raise
            self._bucket.take(spoken.num_parts - before, self._clock())
        if self._start == len(self._held):
            self._held, self._start = b"", 0
        spoken = self._spoken or spoken  # a request may have made it a socket
        if self._may_hand_on(spoken) and self._turn is None:
            self._turn = self._loop.call_later(min(NAP_S, self._owed_s), self._hand_on)
        self._read(not self._held and not self._is_stopped(spoken))

    @property
    def _owed_s(self) -> float:
        """How long the client waits for having sent too many parts."""
        return self._bucket.wait_s(0, self._clock())

    def _may_hand_on(self, spoken: Spoken) -> bool:
        return bool(self._held) and not self._is_stopped(spoken)

    def _is_stopped(self, spoken: Spoken) -> bool:
        return self._is_paused or spoken.is_busy or self.is_unread

    def _read(self, reads: bool) -> None:
        if reads != self._reads and not self._transport.is_closing():
            self._reads = reads
            (self._transport.resume_reading if reads else self._transport.pause_reading)()

    def eof_received(self) -> bool | None:
        """Nothing waits then: a connection is read to its end only when all was handed on."""
        return None if self._spoken is None else self._spoken.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._turn is not None:
            self._turn.cancel()
        self._held, self._start = b"", 0
        self._on_lost(self)
        if self._spoken is not None:
            self._spoken.connection_lost(exc)

    def pause_writing(self) -> None:
        self.is_unread = True
        if self._spoken is not None:
            self._spoken.pause_writing()
        self.go_on()

    def resume_writing(self) -> None:
        self.is_unread = False
        if self._spoken is not None:
            self._spoken.resume_writing()
        self.go_on()


class HeldTransport:
    """A transport whose reading a `Connection` decides on, together with who is given this."""

    def __init__(self, transport: Any, connection: Connection) -> None:
        self._transport, self._connection = transport, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it; what comes after the end is dropped, where uvloop's own transport raises."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._connection.pause()

    def resume_reading(self) -> None:
        self._connection.resume()

    def set_protocol(self, protocol: Any) -> None:
        """Something else is spoken from now on."""
        self._connection.speak(protocol)


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
