"""How different is what a camera sees now from what it saw last?

Read off its events: where on the sensor they fall and of which polarity, as a coarse picture of
shares. It costs one pass over the events, and knows nothing of what they show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.media.events import Events

COLUMNS, ROWS = 8, 6


@dataclass(frozen=True, eq=False)
class EventPicture:
    """The shares of the events by place and polarity; all zero where there was none."""

    shares: NDArray[np.float64]

    @classmethod
    def of(cls, events: Events) -> EventPicture:
        """The picture of a window, whatever its length."""
        sensor = events.sensor
        column = events.x.astype(np.intp) * COLUMNS // sensor.width
        row = events.y.astype(np.intp) * ROWS // sensor.height
        cells = (row * COLUMNS + column) * 2 + events.p.astype(np.intp)
        counts = np.bincount(cells, minlength=ROWS * COLUMNS * 2)
        return cls(counts / max(1, len(events)))

    def change_from(self, other: EventPicture) -> float:
        """From 0 (the same) to 1 (no event where there was one): the share that moved."""
        return float(np.clip(np.abs(self.shares - other.shares).sum() / 2, 0.0, 1.0))
