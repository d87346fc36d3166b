"""Messages that wait to be delivered, by one thread, to a receiver that may be slow, away or gone.

The queue is bounded: where it is full, the oldest message makes room. It knows nothing of the
receiver but its name.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

logger = logging.getLogger(__name__)

MAX_WAITING = 256
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Between two attempts: the first pause; each one after it is twice as long."""
MAX_ERROR_CHARS = 200
GRACE_S = 5.0
"""How long a sink that is closed goes on delivering what waits."""

Message = TypeVar("Message")


@dataclass(frozen=True)
class DeliveryCounts:
    """What became of the rows posted."""

    delivered: int = 0
    """Taken by the receiver, which said so."""
    dropped: int = 0
    """Pushed out by newer ones, refused by the receiver, or not delivered at the end."""
    waiting: int = 0
    last_error: str | None = None


class Outbox(Generic[Message]):
    """`put`, `close` and `counts` are for any thread; the rest is for the one that delivers."""

    def __init__(self, receiver: str, max_waiting: int, first_pause_s: float) -> None:
        """``receiver`` is a name for the log; it must hold no secret."""
        self._receiver, self._max_waiting = receiver, max_waiting
        self._first_pause_s = self._pause_s = first_pause_s
        self._waiting: deque[Message] = deque()
        self._under_way: Message | None = None
        self._num_delivered = self._num_dropped = 0
        self._last_error: str | None = None
        self._changed = threading.Condition()
        self._deadline_s: float | None = None
        """Set by `close`: until then what waits is delivered."""
        self._is_abandoned = False
        self._is_failing = False

    @property
    def counts(self) -> DeliveryCounts:
        with self._changed:
            return DeliveryCounts(
                self._num_delivered, self._num_dropped, len(self._waiting), self._last_error
            )

    def put(self, message: Message) -> None:
        with self._changed:
            if self._deadline_s is not None:
                self._num_dropped += 1
                return
            if len(self._waiting) == self._max_waiting:
                self._waiting.popleft()
                self._num_dropped += 1
            self._waiting.append(message)
            self._changed.notify_all()

    def close(self, grace_s: float) -> None:
        """Take no more messages; those that wait may be delivered for ``grace_s``."""
        with self._changed:
            if self._deadline_s is None:
                self._deadline_s = time.monotonic() + grace_s
            self._changed.notify_all()

    def abandon(self) -> None:
        """Drop what is not delivered. The counts are final, whatever is still under way."""
        with self._changed:
            if not self._is_abandoned:
                self._num_dropped += len(self._waiting) + (self._under_way is not None)
            self._waiting.clear()
            self._is_abandoned = True

    @property
    def is_due(self) -> bool:
        """Whether there is something to do: a message to deliver, or the end."""
        with self._changed:
            is_closed = self._deadline_s is not None
            return bool(self._waiting) or self._under_way is not None or is_closed

    def wait_until_due(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_due)

    def take(self) -> Message | None:
        """The message to deliver: the same one until it is settled. None if there is none."""
        with self._changed:
            if self._under_way is None and self._waiting:
                self._under_way = self._waiting.popleft()
            return self._under_way

    def settle(self, is_delivered: bool) -> None:
        """The receiver has taken the message under way, or will never take it."""
        with self._changed:
            self._under_way, self._pause_s = None, self._first_pause_s
            if is_delivered:
                self._is_failing = False
            if not self._is_abandoned:
                self._num_delivered += is_delivered
                self._num_dropped += not is_delivered

    def note_failure(self, error: str) -> None:
        """An attempt has failed. What the receiver said of it goes to a log, and to people."""
        error = "".join(char if char.isprintable() else " " for char in error[:MAX_ERROR_CHARS])
        with self._changed:
            self._last_error = error
            is_news, self._is_failing = not self._is_failing, True
        if is_news:  # once for each time that it goes away
            logger.warning("%s does not take answers: %s", self._receiver, error)

    def pause(self) -> None:
        """Wait before the next attempt, longer each time; `close` ends the wait."""
        with self._changed:
            if self._deadline_s is None:
                self._changed.wait_for(lambda: self._deadline_s is not None, self._pause_s)
            else:
                self._changed.wait_for(lambda: False, min(self._pause_s, self.time_left_s()))
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def time_left_s(self) -> float:
        """Until deliveries must end; infinite before `close`."""
        with self._changed:
            if self._deadline_s is None:
                return float("inf")
            return max(0.0, self._deadline_s - time.monotonic())

    @property
    def is_over(self) -> bool:
        with self._changed:
            is_empty = not self._waiting and self._under_way is None
            return self._deadline_s is not None and (is_empty or self.time_left_s() == 0)


class AnswerSink(ABC):
    """One receiver of rows, a `Hook` or an `MqttPublisher`: any thread may use it."""

    _outbox: Outbox[Any]

    @property
    def counts(self) -> DeliveryCounts:
        """As of now; delivered is what the receiver has acknowledged. After `close` it is final."""
        return self._outbox.counts

    @abstractmethod
    def post(self, row: Mapping[str, object]) -> None:
        """Have a row delivered, after those before it. Returns at once."""

    @abstractmethod
    def close(self, grace_s: float = GRACE_S) -> None:
        """Deliver what waits, for at most ``grace_s``, and drop the rest."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
