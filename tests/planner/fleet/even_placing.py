"""A placing without chance: what no router does that keeps a camera on its engine.

Beside it a test sees what hashing costs, and what other things do without hashing.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EvenPlacing:
    """The cameras in turn; those of an engine that is gone go to the others in turn."""

    num_engines: int

    def owners(self, cameras, is_up):
        """The engine with the camera's number, or else one of those that are up."""
        owners = cameras % self.num_engines
        lost = ~is_up[owners]
        others = np.nonzero(is_up)[0]
        owners[lost] = others[(cameras[lost] // self.num_engines) % others.size]
        return owners
