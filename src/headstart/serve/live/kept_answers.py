"""Answers that a client may not have yet: kept until it says that it has them."""

import asyncio
from collections import deque
from collections.abc import Iterator

from headstart.serve.live.messages import Message
from headstart.serve.refusal import bad_request

MAX_KEPT = 64
"""Answers that the client has not acknowledged. No more are sent until it acknowledges one."""


class KeptAnswers:
    """Numbers answers from 1 on. Used from one event loop only."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Message]] = deque()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_last = False
        self.number = 0
        """Of the newest answer."""

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Message]:
        """Those that were not acknowledged, in order."""
        return (message for _, message in self._kept)

    async def wait_for_room(self) -> None:
        """Until another answer may be added."""
        await self._has_room.wait()

    def add(self, answer: Message) -> Message:
        """Keep an answer; returns it with its number."""
        self.number += 1
        message: Message = {**answer, "number": self.number}
        self._kept.append((self.number, message))
        if len(self._kept) >= MAX_KEPT and not self._is_last:
            self._has_room.clear()
        return message

    def acknowledge(self, number: int) -> None:
        """The client has all answers up to this one; raises a refusal if it cannot."""
        if number > self.number:
            raise bad_request(
                f"number is {number}, and {self.number} answers were given; name the last one that"
                " has arrived"
            )
        while self._kept and self._kept[0][0] <= number:
            self._kept.popleft()
        if len(self._kept) < MAX_KEPT:
            self._has_room.set()

    def stop_waiting(self) -> None:
        """Add the last answers without waiting for the client."""
        self._is_last = True
        self._has_room.set()
