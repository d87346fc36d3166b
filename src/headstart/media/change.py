"""How much a scene changed, by its events: between two windows, or as they come.

Events are counted by place and polarity, in coarse cells. The change between two windows is the
distance of their shares; the activity of a stream is what its cells hold beyond what is usual
there. Both take one pass over the events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.media.events import Events

COLUMNS, ROWS = 8, 6
FALL_S, RISE_S = 1.0, 5.0
"""How soon the usual rate follows a lower and a higher one."""
USUAL_SPREAD, NUM_SIGMA = 1.3, 3.0
"""By how much a count that is usual may be exceeded: a share, and the noise of counting."""
MIN_STRETCH_S = 0.08


def cell_counts(events: Events) -> NDArray[np.float64]:
    """Events by cell and polarity, [ROWS * COLUMNS * 2]."""
    sensor = events.sensor
    column = events.x.astype(np.intp) * COLUMNS // sensor.width
    row = events.y.astype(np.intp) * ROWS // sensor.height
    cells = (row * COLUMNS + column) * 2 + events.p.astype(np.intp)
    return np.bincount(cells, minlength=ROWS * COLUMNS * 2).astype(np.float64)


@dataclass(frozen=True, eq=False)
class EventPicture:
    """The shares of events by place and polarity; all zero without events."""

    shares: NDArray[np.float64]

    @classmethod
    def of(cls, events: Events) -> EventPicture:
        return cls(cell_counts(events) / max(1, len(events)))

    def change_from(self, other: EventPicture) -> float:
        """The share of events that fall elsewhere: 0 is no change, 1 is no overlap."""
        return float(np.clip(np.abs(self.shares - other.shares).sum() / 2, 0.0, 1.0))


class Activity:
    """What moves in the picture: the events of each cell beyond what is usual there.

    A sensor's noise, and rain, give every cell a rate of its own. What is usual follows a fall
    within a second and a rise within several, so that what passes by stands out, and so does a
    start after a stop. Not thread-safe.
    """

    def __init__(self) -> None:
        self._usual_hz: NDArray[np.float64] | None = None
        self._counts: NDArray[np.float64] = np.zeros(ROWS * COLUMNS * 2)
        self._seconds = 0.0

    def of(self, events: Events, seconds: float) -> float:
        """The events beyond the usual, a pixel, of the time since the last piece; learns from it.

        Short pieces are taken together, so that a camera's frame rate matters little. The first
        ones are only learned from.
        """
        self._counts += cell_counts(events)
        self._seconds += seconds
        if self._seconds < MIN_STRETCH_S:
            return 0.0
        counts, seconds = self._counts, self._seconds
        self._counts, self._seconds = np.zeros_like(counts), 0.0
        rates_hz = counts / seconds
        if self._usual_hz is None:
            self._usual_hz = rates_hz
            return 0.0
        usual = self._usual_hz * seconds
        beyond = counts - USUAL_SPREAD * usual - NUM_SIGMA * np.sqrt(usual + 1.0)
        settling_s = np.where(rates_hz < self._usual_hz, FALL_S, RISE_S)
        self._usual_hz += (1.0 - np.exp(-seconds / settling_s)) * (rates_hz - self._usual_hz)
        return float(np.maximum(0.0, beyond).sum()) / (events.sensor.width * events.sensor.height)
