"""A camera on a bad line: a lab drive whose frames come jittered, late, doubled, cut, or not."""

import random
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from headstart.live.sources.source import Arrival
from headstart.media.events import Events
from headstart_lab.split import Split
from headstart_lab.world.drive import LAB_SIZE, SECOND_US, Drive
from headstart_lab.world.painter import render

FRAME_HZ = 10
JITTER_US = 40_000
"""A frame's time is its place in the drive, and up to twice this."""
LOST, SWAPPED, DOUBLED, CUT, GAP = 0.08, 0.06, 0.04, 0.01, 0.005
"""The share of frames to which each of these happens."""
GAP_FRAMES = (FRAME_HZ, 3 * FRAME_HZ)


class RoughCamera:
    """One held-out drive; each frame and each second's events are drawn once."""

    def __init__(self, number: int) -> None:
        (seed,) = Split.HELD_OUT.seeds(1, skip=number)
        drive = Drive(seed)
        self._events = cache(drive.events)
        self._frame = cache(lambda time_us: render(drive.scene(time_us)))

    def frame(self, time_us: int) -> NDArray[np.uint8]:
        """What the camera sees at a time."""
        return self._frame(time_us)

    def arrivals(self, dice: random.Random) -> Iterator[Arrival]:
        """Frames without end, in the order of their arrival: one that is swapped comes late."""
        number, held_back = 0, list[Arrival]()
        while True:
            if dice.random() < GAP:
                number += dice.randint(*GAP_FRAMES)
            arrival = self._arrival(number, dice)
            number += 1
            if dice.random() < LOST:
                continue
            if not held_back and dice.random() < SWAPPED:
                held_back.append(arrival)
                continue
            yield from [arrival] * (2 if dice.random() < DOUBLED else 1)
            yield from held_back
            held_back.clear()

    def _arrival(self, number: int, dice: random.Random) -> Arrival:
        time_us = number * SECOND_US // FRAME_HZ
        frame = self._frame(time_us)
        if dice.random() < CUT:
            frame = frame[: len(frame) // 2]
        # The lab has events of the end of each second only.
        second, rest = divmod(number + 1, FRAME_HZ)
        events = Events.empty(LAB_SIZE) if rest else self._events(second - 1)
        return Arrival(frame, time_us + dice.randint(0, 2 * JITTER_US), events)


def taken(
    arrivals: Iterable[Arrival], start_us: int, stop_us: int, num_slots: int
) -> list[Arrival]:
    """The frames of a window, by the rule alone: in order of time, the first in each slot.

    A frame counts if it is newer than all before it, and of the size of the window's first. The
    rule is written here once more, so that what is compared does not rest on what is tested.
    """
    newest_us, last_slot, found = -1, -1, list[Arrival]()
    for arrival in arrivals:
        if arrival.time_us <= newest_us:
            continue
        newest_us = arrival.time_us
        slot = (newest_us - start_us) * num_slots // (stop_us - start_us)
        fits = not found or arrival.frame.shape == found[0].frame.shape
        if last_slot < slot < num_slots and slot >= 0 and fits:
            last_slot = slot
            found.append(arrival)
    return found
