"""A source of live frames: what every kind of camera is to the rest of the package."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.media.events import Events


@dataclass(frozen=True, eq=False)
class Arrival:
    """One frame as it came, and the events since the arrival before."""

    frame: NDArray[np.uint8]
    """RGB, [height, width, 3]."""
    time_us: int
    """On the source's clock: microseconds since its first frame. It always increases."""
    events: Events | None = None
    """On the same clock; None where the source has no event stream."""


@dataclass(frozen=True)
class SourceCounts:
    """What has happened to a source so far."""

    frames: int = 0
    """Arrivals that were read from the source."""
    dropped: int = 0
    """Frames that nobody took in time: the oldest make room."""
    reconnects: int = 0
    unreadable: int = 0
    """Files of a folder that could not be read."""
    lost_because: str | None = None
    """Why a camera that was there is not there now."""


class Source(Protocol):
    """Frames at the pace of a camera."""

    @property
    def name(self) -> str:
        """What people know it by; holds no password."""

    def arrivals(self) -> Iterator[Arrival]:
        """Yield frames as they come, until the source ends or is closed. Can be called once.

        Blocks while no frame comes. A connection that is lost is made again; only a source whose
        first connection fails raises a `HeadstartError`.
        """

    def close(self) -> None:
        """End `arrivals`, and every thread and process of this source. From any thread."""

    @property
    def counts(self) -> SourceCounts:
        """What has happened so far. From any thread."""
