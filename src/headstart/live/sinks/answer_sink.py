"""What answers are posted to: a receiver elsewhere that may be slow, away or gone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Self


@dataclass(frozen=True)
class DeliveryCounts:
    """What became of the rows posted."""

    delivered: int = 0
    """Taken by the receiver, which said so."""
    dropped: int = 0
    """Pushed out by newer ones, refused by the receiver, or not delivered at the end."""
    waiting: int = 0
    last_error: str | None = None


class AnswerSink(Protocol):
    """One receiver of rows: a `Hook`, or an `MqttPublisher`."""

    @property
    def counts(self) -> DeliveryCounts:
        """As of now; after `close` they are final. From any thread."""

    def post(self, row: Mapping[str, object]) -> None:
        """Have a row delivered, after those before it. Returns at once. From any thread."""

    def close(self, grace_s: float = ...) -> None:
        """Deliver what waits, for at most ``grace_s``, and drop the rest."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
