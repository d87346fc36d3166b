"""What uvicorn speaks on a connection, with bounds that it does not have. All contact with it.

uvicorn 0.54 reads the classes of its protocols from its configuration for each connection. It
parses whatever has arrived at once, however much that is, and puts requests that follow one
another on one connection into a list without end.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from headstart.errors import HeadstartError
from headstart_server.connections.connection import Connection, OpenConnections
from headstart_server.connections.frames import Frames
from headstart_server.limits import Limits

MAX_PIPELINE = 8
"""Requests of one connection that wait for the one under way."""
MAX_HEAD_BYTES = 64 << 10
"""Of one request: its first line and its headers. Also of what follows a body."""
HEAD_PIECE_BYTES = 4 << 10
BODY_PIECE_BYTES = 16 << 10
PIECE_PARTS = 64
"""Of a body in short chunks the next piece is so long as held so many of them in the last."""
REFUSED = 1008
"""A socket is closed with this code over its frames."""


_HTTP_METHODS = (
    "on_header",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
    "send_400_response",
    "connection_lost",
)
_SOCKET_METHODS = ("data_received", "send", "handle_parser_exception")


class UvicornError(HeadstartError):
    """Another uvicorn than the one that this package knows."""


def bound_connections(config: Any, limits: Limits, connections: OpenConnections) -> None:
    """Let a server of uvicorn's with this configuration speak through these connections.

    Pictures are compressed already, and what is compressed once more may grow without end.
    """
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    for name, its, known in (
        ("http_protocol_class", "HTTP", HttpToolsProtocol),
        ("ws_protocol_class", "WebSockets", WebSocketsSansIOProtocol),
    ):
        found = getattr(config, name, None)
        _require(found is known, f"speaks {its} with {found!r}")
    http = bounded_http(HttpToolsProtocol)

    def opened(
        config: Any, server_state: Any, app_state: Any, _loop: Any = None
    ) -> asyncio.Protocol:
        loop = _loop or asyncio.get_running_loop()
        spoken = http(config, server_state, app_state, loop)
        return HttpConnection(spoken, connections, loop)

    config.http_protocol_class = opened
    config.ws_protocol_class = bounded_socket(WebSocketsSansIOProtocol, connections.clock)
    config.ws_max_size = limits.max_live_message_bytes
    config.ws_per_message_deflate = False


class HttpConnection(Connection):
    """A connection on which HTTP is spoken first."""

    def __init__(
        self, http: Any, connections: OpenConnections, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(loop, connections.clock, connections.remove)
        self._http, self._connections = http, connections
        http.connection = self

    def connection_made(self, transport: Any) -> None:
        held = self.opened(transport)
        self.speak(self._http)
        self._connections.wait(self)
        self._http.connection_made(held)

    def has_request(self, has_one: bool) -> None:
        (self._connections.work if has_one else self._connections.wait)(self)
        self.go_on()


def bounded_http(http: Any) -> Any:
    _check(http, _HTTP_METHODS, state=("pipeline", "cycle"))

    class BoundedHttp(http):
        """Its callbacks are called by the parser, within `data_received`."""

        connection: HttpConnection

        num_parts = 0
        _num_head_bytes = 0
        _is_in_body = False
        _body_piece_bytes = BODY_PIECE_BYTES
        _under_way: Any = None
        """The request that is answered now, which may be older than the one parsed last."""

        @property
        def is_busy(self) -> bool:
            return bool(self.pipeline)

        def piece_of(self, held: bytes, start: int) -> int:
            """A body as it comes; of heads one at a time."""
            if self._is_in_body:
                return start + self._body_piece_bytes
            end = held.find(b"\r\n\r\n", start, start + HEAD_PIECE_BYTES)
            return end + 4 if end >= 0 else start + HEAD_PIECE_BYTES

        def data_received(self, data: bytes) -> None:
            self._num_head_bytes += len(data)
            before = self.num_parts
            super().data_received(data)
            num_parts = max(1, self.num_parts - before)
            self._body_piece_bytes = min(BODY_PIECE_BYTES, len(data) * PIECE_PARTS // num_parts)
            if self._num_head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse("The head of this request is too long.")

        def on_header(self, name: bytes, value: bytes) -> None:
            self.num_parts += 1
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self.num_parts += 1
            self._num_head_bytes = 0
            if len(self.pipeline) >= MAX_PIPELINE:
                raise BufferError("too many requests follow one another")
            self._is_in_body = True
            num_waiting = len(self.pipeline)
            super().on_headers_complete()
            if len(self.pipeline) == num_waiting:
                self._under_way = self.cycle
            self.connection.has_request(True)

        def on_body(self, body: bytes) -> None:
            self.num_parts += 1
            self._num_head_bytes = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._is_in_body = False
            self._num_head_bytes = 0
            super().on_message_complete()

        def on_response_complete(self) -> None:
            self._under_way = self.pipeline[-1][0] if self.pipeline else None
            super().on_response_complete()
            self.connection.has_request(self._under_way is not None)

        def connection_lost(self, exc: Exception | None) -> None:
            # uvicorn tells it to the request parsed last only.
            if self._under_way is not None:
                self._under_way.disconnected = True
                self._under_way.message_event.set()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self._refuse(msg)

        def _refuse(self, message: str) -> None:
            # Words in the middle of another answer would be taken for a part of it.
            if self.cycle is not None and not self.cycle.response_complete:
                self.transport.abort()
            else:
                super().send_400_response(message)

    return BoundedHttp


def bounded_socket(socket: Any, clock: Callable[[], float]) -> Any:
    _check(socket, _SOCKET_METHODS, state=("conn", "handshake_complete"))

    class BoundedSocket(socket):
        """From the handshake on."""

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._frames = Frames(clock)

        @property
        def is_busy(self) -> bool:
            """Before the handshake is answered a client has nothing to say."""
            return not self.handshake_complete

        @property
        def num_parts(self) -> int:
            return self._frames.num_frames

        def piece_of(self, held: bytes, start: int) -> int:
            return self._frames.piece_of(held, start)

        def data_received(self, data: bytes) -> None:
            if self._frames.excess and not self.transport.is_closing():
                self.conn.fail(REFUSED, self._frames.excess)
                self.handle_parser_exception()
            else:
                super().data_received(data)

        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "websocket.accept":
                self.transport.resume_reading()

    return BoundedSocket


def _check(spoken: Any, methods: Iterable[str], state: Iterable[str]) -> None:
    """Raise unless a protocol of uvicorn's has what is bounded here."""
    for name in methods:
        _require(hasattr(spoken, name), f"has no {name} in its {spoken.__name__}")
    for name in state:
        found = name in spoken.__init__.__code__.co_names
        _require(found, f"keeps no {name} in its {spoken.__name__}")


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise UvicornError(
            f"the installed uvicorn {otherwise}, and headstart bounds what clients may send to"
            " 0.54's HttpToolsProtocol only; install the versions that it is made for: pip install"
            " 'uvicorn[standard]==0.54.0'"
        )
