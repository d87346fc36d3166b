"""Which engine a router sends a camera to: by consistent hashing, or to every engine alike.

A router that hashes puts some points for every engine on a ring. A camera's name is hashed
to a place on it, and the next point decides. When an engine is gone, only its cameras move, each to
the next point of an engine that is up.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.errors import PlanningError

POINTS = 160
"""On the ring for every engine; as many as vllm-router 0.1 has with `consistent_hash`."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Placing(Protocol):
    """Decides where cameras go. It has no state: the same engines up give the same answer."""

    def owners(self, cameras: Numbers, is_up: Flags) -> Numbers:
        """The engine of each of these cameras, given which engines are up."""
        ...


class Ring:
    """Consistent hashing with `POINTS` points for each engine."""

    def __init__(self, num_engines: int) -> None:
        # Cameras and points are numbered apart, so that none of them share a hash.
        points = np.arange(num_engines * POINTS, dtype=np.uint64) << np.uint64(1)
        places = _hashed(points)
        order = np.argsort(places)
        self._places = places[order]
        # Half as wide as elsewhere: large fleets have millions of points.
        self._engines = (order // POINTS).astype(np.int32)

    def owners(self, cameras: Numbers, is_up: Flags) -> Numbers:
        """The engine of the next point, or of the next one whose engine is up."""
        if not is_up.any():
            raise PlanningError("no engine of the fleet is up: give more engines, or fewer deaths")
        names = _hashed((cameras.astype(np.uint64) << np.uint64(1)) | np.uint64(1))
        points = np.searchsorted(self._places, names) % self._places.size
        owners = self._engines[points].astype(np.int64)
        while (lost := np.nonzero(~is_up[owners])[0]).size:
            points[lost] = (points[lost] + 1) % self._places.size
            owners[lost] = self._engines[points[lost]]
        return owners


def _hashed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well mixed 64 bits of every number (the finisher of splitmix64)."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
