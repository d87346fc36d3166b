"""Which engines of a large fleet are simulated by their passes."""

from dataclasses import dataclass
from random import Random

import numpy as np

from headstart_research.planning.fleet.placing import Placing
from headstart_research.planning.fleet.plan import FleetPlan


@dataclass(frozen=True, slots=True)
class Sample:
    """Engines for three questions: how it usually is, at the worst, and after a death."""

    usual: frozenset[int]
    """Drawn at random, whatever happens to them."""
    fullest: int
    """The one with the most cameras."""
    heirs: frozenset[int]
    """Those that get the cameras of the first engine that is killed."""
    killed: frozenset[int]
    """That engine."""
    num_cameras_fullest: int

    @property
    def engines(self) -> frozenset[int]:
        return self.usual | self.heirs | self.killed | {self.fullest}


def sampled(plan: FleetPlan, placing: Placing, num_usual: int, seed: int = 0) -> Sample:
    """Draw so many engines, or take all where there are no more."""
    engines = range(plan.num_engines)
    usual = Random(seed).sample(engines, min(num_usual, plan.num_engines))
    is_up = np.ones(plan.num_engines, dtype=np.bool_)
    home = placing.owners(np.arange(plan.num_cameras, dtype=np.int64), is_up)
    numbers = np.bincount(home, minlength=plan.num_engines)
    killed = plan.killed_engines()
    is_up[killed] = False
    orphans = np.nonzero(np.isin(home, killed[:1]))[0]
    return Sample(
        frozenset(usual),
        int(numbers.argmax()),
        frozenset(placing.owners(orphans, is_up).tolist()),
        frozenset(killed[:1]),
        int(numbers.max()),
    )
