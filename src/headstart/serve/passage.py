"""One request on its way through: its id, whose it is, what became of it."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from headstart.serve.refusal import Message, Receive, RefusedError, Scope, Send
from headstart.serve.settings import Limits

_MOST_DISCARDED = 4
"""Of a body too long, so many times its limit is read and thrown away before it is refused."""

# Of a client's headers, vLLM gets these. Others steer it: whose turn it is, which rank answers.
_FORWARDED = frozenset(
    {b"content-type", b"accept", b"user-agent", b"authorization", b"traceparent", b"tracestate"}
)

_ENGINE_ENDED = RefusedError(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the model's engine has ended; ask again when this server has been started again",
    retry_after_s=30,
)


@dataclass
class Passage:
    """Wraps a request's two ends. Changes nothing but its id and, where told, its body."""

    scope: Scope
    receive: Receive
    raw_send: Send
    engine_is_dead: Callable[[], bool]
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    received_s: float = field(default_factory=time.monotonic)
    tenant: str = ""
    status: int = 0
    streams: bool = False
    num_bytes: int = 0
    _ended: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    """More for the log."""

    @property
    def started(self) -> bool:
        """Whether the client has been sent anything."""
        return self.status != 0

    def header(self, name: bytes) -> str:
        """A header's text, empty if it is not there."""
        for key, value in self.scope["headers"]:
            if key.lower() == name:
                return str(value.decode("latin-1"))
        return ""

    def query(self, name: str) -> str | None:
        """A value of the address's query, if it is there once."""
        values = parse_qs(self.scope.get("query_string", b"").decode("latin-1")).get(name, [])
        return values[0] if len(values) == 1 else None

    async def send(self, message: Message) -> None:
        """To the client, with the request's id."""
        if self._ended:
            return
        if message["type"] == "http.response.start":
            if message["status"] == HTTPStatus.INTERNAL_SERVER_ERROR and self.engine_is_dead():
                # The request was good: another server, or this one started again, answers it.
                await _ENGINE_ENDED.send(self.send)
                self._ended = True
                return
            headers = [*message.get("headers", []), (b"x-request-id", self.request_id.encode())]
            message = {**message, "headers": headers}
            self.status = message["status"]
            kinds = dict(headers)
            self.streams = kinds.get(b"content-type", b"").startswith(b"text/event-stream")
        await self.raw_send(message)

    async def body(self, limits: Limits) -> bytes:
        """All of it, as long as it is not too long."""
        too_long = RefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a request may have {limits.max_body_bytes} bytes; send fewer frames or upload events",
        )
        stated = self.header(b"content-length")
        if stated.isdecimal() and int(stated[:20]) > _MOST_DISCARDED * limits.max_body_bytes:
            raise too_long
        parts: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeftError
            self.num_bytes += len(message.get("body", b""))
            if self.num_bytes <= limits.max_body_bytes:
                parts.append(message.get("body", b""))
            elif self.num_bytes > _MOST_DISCARDED * limits.max_body_bytes:
                raise too_long
            if not message.get("more_body", False):
                break
        # Only now: a client that is still sending would not hear it.
        if self.num_bytes > limits.max_body_bytes:
            raise too_long
        return b"".join(parts)

    def onward(self, body: bytes) -> tuple[Scope, Receive]:
        """The request for vLLM: this body, this id."""
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


class ClientLeftError(Exception):
    """Nobody waits for an answer any more."""
