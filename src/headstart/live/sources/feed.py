"""What a source reads from: frames with their times, one after another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.media.stream import TimedFrame


@dataclass(frozen=True)
class FeedCounts:
    """What went wrong with a feed so far."""

    reconnects: int = 0
    unreadable: int = 0
    lost_because: str | None = None
    """Why no connection is there now; none while one is, and before the first."""


class Feed(Protocol):
    """Frames as they come, on the source's clock."""

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield each frame with its time in us, increasing; blocks while none comes."""

    def close(self) -> None:
        """End `frames` soon. From any thread."""

    @property
    def counts(self) -> FeedCounts:
        """What went wrong so far. From any thread."""


class Connection(Protocol):
    """One connection to a camera. Nothing is connected before `frames` is iterated."""

    def frames(self) -> Iterator[TimedFrame]:
        """Yield frames as they come. Returning is the stream's end; a `HeadstartError` or
        `OSError` is its loss."""

    def close(self) -> None:
        """End `frames` soon. From any thread."""
