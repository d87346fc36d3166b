"""Counts, times, rates and coordinates of a recording, from one pass in bounded memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headstart.media.events import MAX_SIDE, Events

NUM_BINS = 512


@dataclass(frozen=True, eq=False)
class Summary:
    """What a recording holds.

    ``counts`` are the events of consecutive steps of ``bin_us``, from the first event to the last.
    ``x_range`` and ``y_range`` are the smallest and the largest coordinate.
    """

    num_events: int
    num_brighter: int
    first_us: int
    last_us: int
    x_range: tuple[int, int]
    y_range: tuple[int, int]
    bin_us: int
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, blocks: Iterable[Events]) -> Self:
        """Summarise pieces in order of time; each is looked at once and not kept."""
        num_events = num_brighter = first_us = last_us = 0
        x_range = y_range = (MAX_SIDE, 0)
        bin_us = 1
        counts = np.zeros(NUM_BINS, dtype=np.int64)
        for events in blocks:
            if not len(events):
                continue
            if not num_events:
                first_us = int(events.t[0])
            num_events += len(events)
            num_brighter += int(np.count_nonzero(events.p))
            last_us = int(events.t[-1])
            x_range, y_range = _widened(x_range, events.x), _widened(y_range, events.y)
            # The duration is not known yet: when it outgrows the steps, join them by two.
            while (last_us - first_us) // bin_us >= NUM_BINS:
                joined = counts.reshape(-1, 2).sum(axis=1)
                counts = np.concatenate([joined, np.zeros_like(joined)])
                bin_us *= 2
            counts += np.bincount((events.t - first_us) // bin_us, minlength=NUM_BINS)
        used = (last_us - first_us) // bin_us + 1 if num_events else 0
        return cls(
            num_events, num_brighter, first_us, last_us, x_range, y_range, bin_us, counts[:used]
        )

    @property
    def duration_us(self) -> int:
        """From the first event to the last."""
        return self.last_us - self.first_us

    @property
    def rate_hz(self) -> float:
        """Events a second over the whole recording; 0 where it has no duration."""
        return self.num_events * 1e6 / self.duration_us if self.duration_us else 0.0

    def rates_hz(self, num_steps: int) -> NDArray[np.float64]:
        """Events a second in each of at most ``num_steps`` steps of about equal time."""
        if not self.num_events:
            return np.zeros(0)
        num_steps = min(num_steps, len(self.counts))
        edges = np.linspace(0, len(self.counts), num_steps + 1).astype(int)
        per_step = np.add.reduceat(self.counts, edges[:-1])
        # The last step ends with the last event, not with its bin.
        ends_us = np.minimum(edges[1:] * self.bin_us, max(self.duration_us, 1))
        seconds = np.maximum(ends_us - edges[:-1] * self.bin_us, 1) / 1e6
        rates: NDArray[np.float64] = per_step / seconds
        return rates


def _widened(known: tuple[int, int], values: NDArray[np.uint16]) -> tuple[int, int]:
    return min(known[0], int(values.min())), max(known[1], int(values.max()))
