"""The messages on their way to one client."""

import asyncio
from collections import deque

from headstart_client.wire import CloseCode
from headstart_server.live.messages import Message

MAX_WAITING = 256
"""Messages for a client that reads slowly; beyond, those that can be missed are left out."""
MOST_WAITING = 2 * MAX_WAITING
"""With so many the client has stopped reading: it is given up, and may come back."""


class Outgoing:
    """Hands out messages in order, as fast as the client reads. Used from one event loop only."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._news = asyncio.Event()
        self._code: CloseCode | None = None

    @property
    def is_full(self) -> bool:
        """Whether the client has not read much of what was sent."""
        return len(self._waiting) >= MAX_WAITING

    def tell(self, message: Message) -> None:
        """Send a message that may not be missed."""
        if self._code is None:
            self._waiting.append(message)
            self._news.set()
            if len(self._waiting) >= MOST_WAITING:
                self.finish(CloseCode.TRY_LATER)

    def mention(self, message: Message) -> bool:
        """Send a message unless the client reads too slowly; returns whether it is sent."""
        is_sent = self._code is None and not self.is_full
        if is_sent:
            self.tell(message)
        return is_sent

    def finish(self, code: CloseCode) -> None:
        """Send nothing more, and close after what waits."""
        if self._code is None:
            self._code = code
            self._news.set()

    async def next(self) -> Message | CloseCode:
        """The next message; after the last one, how the connection is to be closed."""
        while not self._waiting:
            if self._code is not None:
                return self._code
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()
