"""An open loop: questions arrive by themselves, however many still wait for an answer.

Questions arrive as a Poisson process, singly or several at the same moment. The process is drawn
given its number of questions: then its times are uniform over its length, and the rate that was
asked for is the rate that is played. The times follow from a seed, so every engine gets the same.
"""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from headstart.errors import BenchError

Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One question of one stream, and its time since the beginning."""

    at_s: float
    stream: int
    index: int
    """The question's place on its stream."""


@dataclass(frozen=True, slots=True)
class Load:
    """Questions that arrive at a share of bare vLLM's capacity."""

    share: float
    burst: int = 1
    """How many arrive at the same moment."""

    def __post_init__(self) -> None:
        if self.share <= 0 or self.burst < 1:
            raise BenchError(
                f"{self.burst} questions at a time at {self.share} of the capacity: give at least"
                " one question, and a share above 0"
            )

    @property
    def name(self) -> str:
        """What is added to the name of the workload."""
        return f"at {self.share:g}" if self.burst == 1 else "in bursts"

    @property
    def words(self) -> str:
        """What is added to the description of the workload."""
        rate = f"{self.share:g} of bare vLLM's capacity"
        if self.burst == 1:
            return f"questions arrive at random, at {rate}"
        return f"questions arrive {self.burst} at the same moment, at random, at {rate}"


def arrivals(
    num_streams: int, num_each: int, *, rate: float, burst: int = 1, seed: int = 0
) -> list[Arrival]:
    """The questions of all streams, which arrive at each stream in turn, ``rate`` a second.

    Two rates of one seed have the same pattern, faster or slower.
    """
    if rate <= 0:
        raise BenchError(f"{rate} questions a second: give a rate above 0")
    total = num_streams * num_each
    num_moments = -(-total // burst)
    chance = random.Random(seed)
    moments = sorted(chance.uniform(0.0, total / rate) for _ in range(num_moments))
    return [
        Arrival(moments[number // burst], number % num_streams, number // num_streams)
        for number in range(total)
    ]


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
