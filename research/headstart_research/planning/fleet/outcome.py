"""What became of the windows of a simulated fleet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Fate(StrEnum):
    """What becomes of a window."""

    ANSWERED = "answered"
    DROPPED = "dropped"
    """A newer one of the same camera came before its turn."""
    REFUSED = "refused"
    """Its engine had as many cameras as it takes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A window whose fate is known."""

    fate: Fate
    home: int
    """The engine that the camera is on as long as all are up."""
    landed_s: float
    wait_s: float
    """From its last frame to the last word; 0 without an answer."""
    is_retried: bool
    """Its first engine died over it."""


@dataclass
class Outcome:
    """All windows that ended on the simulated engines."""

    ended: list[Ended] = field(default_factory=list)

    def of(self, wanted: Callable[[Ended], bool]) -> "Outcome":
        """Some of the windows."""
        return Outcome([each for each in self.ended if wanted(each)])

    def waits_s(self) -> NDArray[np.float64]:
        return np.array([each.wait_s for each in self.ended if each.fate is Fate.ANSWERED])

    def percentile_s(self, percent: float) -> float:
        """Of the waits; infinite if nothing was answered."""
        waits_s = self.waits_s()
        return float(np.percentile(waits_s, percent)) if waits_s.size else float("inf")

    def num(self, fate: Fate) -> int:
        """How many windows ended like this."""
        return sum(each.fate is fate for each in self.ended)

    @property
    def num_retried(self) -> int:
        """Windows that were asked again because their engine died."""
        return sum(each.is_retried for each in self.ended)
