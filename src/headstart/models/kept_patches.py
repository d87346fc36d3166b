"""A plan of patches on its way through vLLM's processor, and the positions of what is kept.

The plan of a video travels in vLLM's metadata of the video. Each part that is shown carries its own
share of the plan. It is hashed with the part's pixels, so that a part under another plan is
another item in every cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.media.approximate import PatchPlan

_PLAN, _KEPT = "headstart_plan", "headstart_kept"
_STEP, _PATCHES, _GRID = "step", "patches", "grid"

Metadata = dict[str, Any]
"""vLLM's metadata of a video or of a part."""


@dataclass(frozen=True, eq=False)
class KeptPatches:
    """The share of one part in a plan: which step of its video it is, and what is shown of it."""

    step: int
    patches: NDArray[np.bool_]
    """[rows, columns]"""

    def metadata(self) -> Metadata:
        """The form in which vLLM hashes it: plain numbers."""
        return {
            _KEPT: {
                _STEP: self.step,
                _PATCHES: np.flatnonzero(self.patches).tolist(),
                _GRID: list(self.patches.shape),
            }
        }

    @classmethod
    def of(cls, metadata: Mapping[str, Any] | None) -> KeptPatches | None:
        """What a part's metadata say of it; None for a part that is shown whole."""
        given = None if metadata is None else metadata.get(_KEPT)
        if given is None:
            return None
        patches = np.zeros(given[_GRID], dtype=np.bool_)
        patches.flat[given[_PATCHES]] = True
        return cls(given[_STEP], patches)

    def on(self, rows: int, columns: int) -> NDArray[np.bool_]:
        """The same on a grid of another size: each patch as the plan's at its middle."""
        old_rows, old_columns = self.patches.shape
        row = ((np.arange(rows) + 0.5) * old_rows / rows).astype(np.intp)
        column = ((np.arange(columns) + 0.5) * old_columns / columns).astype(np.intp)
        found: NDArray[np.bool_] = self.patches[np.ix_(row, column)]
        if not found.any():  # the grid is coarser, and every middle fell on a patch left out
            first_row, first_column = np.argwhere(self.patches)[0]
            found[first_row * rows // old_rows, first_column * columns // old_columns] = True
        return found


def without_plan(metadata: Mapping[str, Any]) -> Metadata:
    """The metadata that vLLM knows."""
    return {name: given for name, given in metadata.items() if name not in (_PLAN, _KEPT)}


def planned(plan: PatchPlan) -> Metadata:
    """A whole plan as metadata of its video."""
    return {_PLAN: plan}


def plan_of(metadata: Mapping[str, Any] | None) -> dict[int, KeptPatches] | None:
    """Each part that is shown of a video, by its step; None where all are, and whole."""
    plan = None if metadata is None else metadata.get(_PLAN)
    if plan is None:
        return None
    pairs = zip(plan.steps, plan.kept, strict=True)
    return {int(step): KeptPatches(int(step), kept) for step, kept in pairs}
