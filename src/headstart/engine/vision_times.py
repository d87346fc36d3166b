"""How long vLLM's vision tower took for each request, as its workers measured it.

The workers hand over the times of all requests at once and forget them. Those of other requests are
kept here, up to a bound, until they are asked for.
"""

from collections.abc import Iterable, Mapping
from typing import Any

RPC = "get_encoder_timing_stats"
"""What the workers are asked."""
MAX_KEPT = 1000


class VisionTimes:
    """Seconds by vLLM's name of the request, which contains the one it was given."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._seconds)

    def note(self, workers: Iterable[Mapping[str, Mapping[str, float]]], renderer: Any) -> None:
        """Keep what each worker handed over."""
        for worker in workers:
            for name, stats in worker.items():
                # Several workers encode the same pictures together: the slowest counts.
                seconds = stats["encoder_forward_secs"]
                self._seconds[name] = max(self._seconds.get(name, 0.0), seconds)
        while len(self._seconds) > MAX_KEPT:
            del self._seconds[next(iter(self._seconds))]
        # The switch that times the tower makes vLLM's renderer keep times that are never read.
        if (unread := getattr(renderer, "_mm_timing_registry", None)) is not None:
            unread.stat()

    def take(self, mark: str) -> float:
        """The time of the requests with this in their name, which are then forgotten."""
        ours = [name for name in self._seconds if mark in name]
        return sum(self._seconds.pop(name) for name in ours)
