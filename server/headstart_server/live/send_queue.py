"""The messages on their way to one client, and how its connection is closed after the last one."""

import asyncio
from collections import deque
from http import HTTPStatus

from headstart_client.wire import CloseCode
from headstart_server.live.messages import Message, error_message
from headstart_server.refusal import RefusedError

MAX_WAITING = 256
"""Messages for a client that reads slowly; beyond, those that can be missed are left out."""
MOST_WAITING = 2 * MAX_WAITING
"""With so many the client has stopped reading: it is given up, and may come back."""


class SendQueue:
    """Hands out messages in order, as fast as the client reads. Used from one event loop only."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._news = asyncio.Event()
        self._code: CloseCode | None = None

    @property
    def is_full(self) -> bool:
        """Whether the client has not read much of what was sent."""
        return len(self._waiting) >= MAX_WAITING

    def send(self, message: Message) -> None:
        """Send a message that may not be missed."""
        if self._code is None:
            self._waiting.append(message)
            self._news.set()
            if len(self._waiting) >= MOST_WAITING:
                self.finish(CloseCode.TRY_LATER)

    def send_if_room(self, message: Message) -> bool:
        """Send a message unless the client reads too slowly; returns whether it is sent."""
        is_sent = self._code is None and not self.is_full
        if is_sent:
            self.send(message)
        return is_sent

    def finish(self, code: CloseCode) -> None:
        """Send nothing more, and close after what waits."""
        if self._code is None:
            self._code = code
            self._news.set()

    def refuse(self, refusal: RefusedError) -> None:
        """Send a refusal as the last message."""
        self.send(error_message(refusal, is_last=True))
        self.finish(close_code(refusal))

    async def next(self) -> Message | CloseCode:
        """The next message; after the last one, how the connection is to be closed."""
        while not self._waiting:
            if self._code is not None:
                return self._code
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


def close_code(refusal: RefusedError) -> CloseCode:
    """How a socket is closed over a refusal."""
    if refusal.retry_after_s is not None:
        return CloseCode.TRY_LATER
    is_ours = refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return CloseCode.FAILED if is_ours else CloseCode.REFUSED
