"""The state of one request in the gateway: its id, its tenant, its response so far."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from headstart_server.asgi import Message, Receive, Scope, Send
from headstart_server.refusal import RefusedError

_MAX_DISCARDED = 4
"""Of a body over the limit, this multiple of the limit is read and discarded before a refusal."""

# Only these headers reach vLLM. Others would steer it: priorities, data-parallel ranks.
_FORWARDED = frozenset(
    {b"content-type", b"accept", b"user-agent", b"authorization", b"traceparent", b"tracestate"}
)

_ENGINE_ENDED = RefusedError(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the model's engine has ended; ask again when this server has been started again",
    retry_after_s=30,
)


@dataclass
class RequestContext:
    """Wraps a request's ``receive`` and ``send``, and adds the request's id to the response."""

    scope: Scope
    receive: Receive
    raw_send: Send
    engine_is_dead: Callable[[], bool]
    stream: str = ""
    """That the request's address names."""
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    received_s: float = field(default_factory=time.monotonic)
    tenant: str = ""
    caller: str = ""
    """Whose key it has, a tenant's or an operator's; empty without one."""
    status: int = 0
    streams: bool = False
    num_bytes: int = 0
    _ended: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    """More fields for the access log."""

    @property
    def started(self) -> bool:
        return self.status != 0

    def header(self, name: bytes) -> str:
        """The text of a header; empty if there is none."""
        for key, value in self.scope["headers"]:
            if key.lower() == name:
                return str(value.decode("latin-1"))
        return ""

    def query(self, name: str) -> str | None:
        """A parameter of the URL's query; none unless it is given exactly once."""
        values = parse_qs(self.scope.get("query_string", b"").decode("latin-1")).get(name, [])
        return values[0] if len(values) == 1 else None

    async def send(self, message: Message) -> None:
        """Send a message to the client, with the request's id."""
        if self._ended:
            return
        if message["type"] == "http.response.start":
            if message["status"] == HTTPStatus.INTERNAL_SERVER_ERROR and self.engine_is_dead():
                # The request was valid: another server, or this one after a restart, can answer it.
                await _ENGINE_ENDED.send(self.send)
                self._ended = True
                return
            headers = [*message.get("headers", []), (b"x-request-id", self.request_id.encode())]
            message = {**message, "headers": headers}
            self.status = message["status"]
            self.streams = is_event_stream(message)
        await self.raw_send(message)

    async def body(self, max_bytes: int, count: Callable[[int], None]) -> bytes:
        """Receive the whole body; raises a refusal if it is longer than ``max_bytes``.

        ``count`` is called with the number of bytes kept so far, and may refuse the request too.
        """
        stated = self.header(b"content-length")
        if stated.isdecimal() and int(stated[:20]) > _MAX_DISCARDED * max_bytes:
            raise _too_long(max_bytes)
        parts: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnectedError
            self.num_bytes += len(message.get("body", b""))
            count(min(self.num_bytes, max_bytes))
            if self.num_bytes <= max_bytes:
                parts.append(message.get("body", b""))
            elif self.num_bytes > _MAX_DISCARDED * max_bytes:
                raise _too_long(max_bytes)
            if not message.get("more_body", False):
                break
        # Only now: a client that is still sending would not read the refusal.
        if self.num_bytes > max_bytes:
            raise _too_long(max_bytes)
        return b"".join(parts)

    def onward(self, body: bytes) -> tuple[Scope, Receive]:
        """The scope and ``receive`` of the request that vLLM gets, with this body and this id."""
        headers = [
            (key, value) for key, value in self.scope["headers"] if key.lower() in _FORWARDED
        ]
        headers += [
            (b"host", b"localhost"),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", self.request_id.encode()),
        ]
        given = False

        async def receive() -> Message:
            nonlocal given
            if given:
                return await self.receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return {**self.scope, "headers": headers}, receive


def is_event_stream(start: Message) -> bool:
    """Whether the response that starts with this message is streamed."""
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))


def _too_long(max_bytes: int) -> RefusedError:
    return RefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"a request may have {max_bytes} bytes; send fewer frames or upload events",
    )


class ClientDisconnectedError(Exception):
    """The client closed its connection before it had sent the whole request."""
