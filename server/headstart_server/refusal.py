"""Refusals, which become error responses: a status, a reason, what to do next."""

from http import HTTPStatus
from typing import Any

from headstart.errors import HeadstartError
from headstart_server.asgi import Send, send_json


class RefusedError(HeadstartError):
    """A request is refused. The message names no path, no key and no other tenant."""

    def __init__(self, status: HTTPStatus, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s

    def content(self) -> dict[str, Any]:
        return {
            "error": {
                "message": self.message,
                "type": self.status.phrase.replace(" ", "").removesuffix("Error") + "Error",
                "param": None,
                "code": self.status.value,
            }
        }

    async def send(self, send: Send) -> None:
        headers = []
        if self.retry_after_s is not None:
            headers.append((b"retry-after", str(self.retry_after_s).encode()))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        await send_json(send, self.status, self.content(), headers)


def bad_request(message: str) -> RefusedError:
    """A refusal of a request that the client can correct."""
    return RefusedError(HTTPStatus.BAD_REQUEST, message)


def too_much(reason: str, retry_after_s: int = 1) -> RefusedError:
    """A refusal because a limit is reached; the client may ask again."""
    message = f"{reason}; ask again in {retry_after_s} s"
    return RefusedError(HTTPStatus.TOO_MANY_REQUESTS, message, retry_after_s)
