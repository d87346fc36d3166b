"""How much a scene changed between two windows of events.

Each window becomes a coarse histogram of its events by place and polarity; the change is the
distance of two histograms. It takes one pass over the events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.media.events import Events

COLUMNS, ROWS = 8, 6


@dataclass(frozen=True, eq=False)
class EventPicture:
    """The shares of events by place and polarity; all zero without events."""

    shares: NDArray[np.float64]

    @classmethod
    def of(cls, events: Events) -> EventPicture:
        """The picture of a window of any length."""
        sensor = events.sensor
        column = events.x.astype(np.intp) * COLUMNS // sensor.width
        row = events.y.astype(np.intp) * ROWS // sensor.height
        cells = (row * COLUMNS + column) * 2 + events.p.astype(np.intp)
        counts = np.bincount(cells, minlength=ROWS * COLUMNS * 2)
        return cls(counts / max(1, len(events)))

    def change_from(self, other: EventPicture) -> float:
        """The share of events that fall elsewhere: 0 is no change, 1 is no overlap."""
        return float(np.clip(np.abs(self.shares - other.shares).sum() / 2, 0.0, 1.0))
