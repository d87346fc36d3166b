"""The answers of a camera that a client may not have yet."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from headstart_server.live.messages import Message
from headstart_server.refusal import bad_request

MAX_KEPT = 64
"""Answers of one camera."""


class AnswerStore(Protocol):
    """Numbers answers from 1 on, and keeps some. Used from one event loop only."""

    number: int
    """Of the newest answer."""

    def __len__(self) -> int:
        """How many are kept."""

    def after(self, number: int) -> Iterator[Message]:
        """Those that are kept after this one, in order."""

    async def wait_for_room(self) -> None:
        """Until another answer may be added."""

    def add(self, answer: Message) -> Message:
        """Keep an answer; returns it with its number."""

    def stop_waiting(self) -> None:
        """Add the last answers without waiting for the client."""


class _NumberedAnswers:
    """Numbers answers from 1 on, and keeps them."""

    def __init__(self, most: int | None) -> None:
        """With more than ``most`` of them the oldest go."""
        self._kept: deque[tuple[int, Message]] = deque(maxlen=most)
        self.number = 0

    def __len__(self) -> int:
        return len(self._kept)

    def after(self, number: int) -> Iterator[Message]:
        """Those that are kept after this one, in order."""
        return (message for each, message in self._kept if each > number)

    def add(self, answer: Message) -> Message:
        """Keep an answer; returns it with its number."""
        self.number += 1
        message: Message = {**answer, "number": self.number}
        self._kept.append((self.number, message))
        return message


class UnacknowledgedAnswers(_NumberedAnswers):
    """Kept until the client says that it has them. With too many, no more are added."""

    def __init__(self) -> None:
        super().__init__(None)
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_last = False

    async def wait_for_room(self) -> None:
        """Until another answer may be added."""
        await self._has_room.wait()

    def add(self, answer: Message) -> Message:
        """Keep an answer; returns it with its number."""
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
        """Add the last answers without waiting for the client."""
        self._is_last = True
        self._has_room.set()


class NewestAnswers(_NumberedAnswers):
    """The newest ones, whether or not anybody has read them: nothing waits for a reader."""

    def __init__(self) -> None:
        super().__init__(MAX_KEPT)

    async def wait_for_room(self) -> None:
        """There is always room: the oldest goes."""

    def stop_waiting(self) -> None:
        """Nothing waits."""
