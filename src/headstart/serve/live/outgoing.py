"""The messages on their way to one client."""

import asyncio
import json
from collections import deque

from headstart.client.wire import CloseCode
from headstart.serve.asgi import Send
from headstart.serve.live.messages import Message

MAX_WAITING = 256
"""Messages for a client that reads slowly; beyond, those that can be missed are left out."""


class Outgoing:
    """Sends messages in order, as fast as the client reads. Used from one event loop only."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._news = asyncio.Event()
        self._code: CloseCode | None = None

    @property
    def is_full(self) -> bool:
        """Whether the client has not read much of what was sent."""
        return len(self._waiting) >= MAX_WAITING

    def tell(self, message: Message) -> None:
        """Send a message that may not be missed. Its sender bounds how many there are."""
        if self._code is None:
            self._waiting.append(json.dumps(message))
            self._news.set()

    def mention(self, message: Message) -> bool:
        """Send a message unless the client reads too slowly; returns whether it is sent."""
        if not self.is_full:
            self.tell(message)
        return not self.is_full

    def finish(self, code: CloseCode) -> None:
        """Send nothing more, and close after what waits."""
        if self._code is None:
            self._code = code
            self._news.set()

    async def run(self, send: Send) -> CloseCode:
        """Send until `finish`; returns how the socket is to be closed."""
        while True:
            while self._waiting:
                await send({"type": "websocket.send", "text": self._waiting.popleft()})
            if self._code is not None:
                return self._code
            self._news.clear()
            await self._news.wait()
