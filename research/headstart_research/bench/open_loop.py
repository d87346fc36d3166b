"""Asks questions when they arrive, whether or not earlier ones have been answered."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headstart_research.bench.arrivals import Arrival

Answered = TypeVar("Answered")


def ask_on_arrival(
    arriving: Sequence[Arrival], ask: Callable[[Arrival, float], Answered]
) -> list[Answered]:
    """Call ``ask`` for each arrival at its time; returns when the last answer is there.

    ``ask`` gets the time at which the question arrived, from which its wait counts. A thread is
    started whenever none is free, so no question waits for another one's thread.
    """
    with ThreadPoolExecutor(len(arriving)) as threads:
        under_way = []
        begun_s = time.monotonic()
        for arrival in arriving:
            arrived_s = begun_s + arrival.at_s
            time.sleep(max(0.0, arrived_s - time.monotonic()))
            under_way.append(threads.submit(ask, arrival, arrived_s))
        return [future.result() for future in under_way]
