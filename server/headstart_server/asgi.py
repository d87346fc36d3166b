"""The types of the ASGI interface, and whole responses over it."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PIECE_BYTES = 1 << 16


async def send_json(
    send: Send,
    status: HTTPStatus,
    content: object,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    await send_whole(send, status, b"application/json", json.dumps(content).encode(), headers)


async def send_whole(
    send: Send,
    status: HTTPStatus,
    content_type: bytes,
    body: bytes,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    fields = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *(headers or []),
    ]
    await send({"type": "http.response.start", "status": status.value, "headers": fields})
    # In pieces: for a client that does not read, the server buffers only one of them.
    for start in range(0, len(body), PIECE_BYTES):
        piece = body[start : start + PIECE_BYTES]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
