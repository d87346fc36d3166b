"""The answers of a camera that a client may not have yet."""

import asyncio
from collections import deque
from collections.abc import Iterator

from headstart_server.live.messages import Message
from headstart_server.refusal import bad_request

MAX_KEPT = 64
"""Answers of one camera."""


class AnswerBuffer:
    """Numbers answers from 1 on, and keeps the newest, whether or not anybody has read them.

    Used from one event loop only.
    """

    def __init__(self, most: int | None = MAX_KEPT) -> None:
        self._kept: deque[tuple[int, Message]] = deque(maxlen=most)
        self.number = 0
        """Of the newest answer."""

    def __len__(self) -> int:
        return len(self._kept)

    def after(self, number: int) -> Iterator[Message]:
        """Those that are kept after this one, in order."""
        return (message for each, message in self._kept if each > number)

    async def wait_for_room(self) -> None:
        """Until another answer may be added: at once, since the oldest goes."""

    def add(self, answer: Message) -> Message:
        """Keep an answer; returns it with its number."""
        self.number += 1
        message: Message = {**answer, "number": self.number}
        self._kept.append((self.number, message))
        return message

    def stop_waiting(self) -> None:
        """Add the last answers without waiting for the client."""


class UnacknowledgedAnswers(AnswerBuffer):
    """Kept until the client says that it has them. With too many, no more are added."""

    def __init__(self) -> None:
        super().__init__(None)
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_last = False

    async def wait_for_room(self) -> None:
        await self._has_room.wait()

    def add(self, answer: Message) -> Message:
        message = super().add(answer)
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
        self._is_last = True
        self._has_room.set()
