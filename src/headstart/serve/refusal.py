"""What a client is told when its request is not served: a status, a reason, what to do next."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from headstart.errors import HeadstartError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PIECE_BYTES = 1 << 16


class RefusedError(HeadstartError):
    """Raised anywhere on a request's way in; names no path, no key and no other tenant."""

    def __init__(self, status: HTTPStatus, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s

    def content(self) -> dict[str, Any]:
        """In the form OpenAI's clients read."""
        return {
            "error": {
                "message": self.message,
                "type": self.status.phrase.replace(" ", "").removesuffix("Error") + "Error",
                "param": None,
                "code": self.status.value,
            }
        }

    async def send(self, send: Send) -> None:
        """As the whole response."""
        headers = []
        if self.retry_after_s is not None:
            headers.append((b"retry-after", str(self.retry_after_s).encode()))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        await send_json(send, self.status, self.content(), headers)


def bad_request(message: str) -> RefusedError:
    """The client can mend it."""
    return RefusedError(HTTPStatus.BAD_REQUEST, message)


def too_much(reason: str, retry_after_s: int = 1) -> RefusedError:
    """There is no room now; the client may come back."""
    message = f"{reason}; ask again in {retry_after_s} s"
    return RefusedError(HTTPStatus.TOO_MANY_REQUESTS, message, retry_after_s)


async def send_json(
    send: Send,
    status: HTTPStatus,
    content: object,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """A whole JSON response."""
    await send_whole(send, status, b"application/json", json.dumps(content).encode(), headers)


async def send_whole(
    send: Send,
    status: HTTPStatus,
    content_type: bytes,
    body: bytes,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """A whole response."""
    fields = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *(headers or []),
    ]
    await send({"type": "http.response.start", "status": status.value, "headers": fields})
    # Piece by piece: the server's buffer for a client that does not read holds one of them.
    for start in range(0, len(body), PIECE_BYTES):
        piece = body[start : start + PIECE_BYTES]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
