"""What an approximate answer leaves out: a plan of the patches that the target is shown.

A patch that has not changed is shown once. The newest frame is shown as far as the budget goes, and
of each earlier one the patches that look otherwise in the frame that is shown after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.errors import ApproximateError
from headstart.media.clip import Clip
from headstart.media.patches import PatchGrid, novelty

AUTO_EVENTS = 0.1
"""Events a pixel after which a patch counts as changed, where no budget is given."""
AUTO_FRAME_EVENTS = 0.1
"""The same of a whole frame."""


@dataclass(frozen=True, eq=False)
class PatchPlan:
    """Which patches of a clip's steps are shown. A step is a frame, or what the model makes one."""

    steps: NDArray[np.intp]
    """The numbers of those that are shown at all, in order."""
    kept: NDArray[np.bool_]
    """Their patches, [steps, rows, columns]; one of each at least."""
    num_steps: int
    """Of the whole clip."""

    @classmethod
    def of(cls, kept: NDArray[np.bool_]) -> PatchPlan:
        """The plan that shows these patches of all steps, [steps, rows, columns]."""
        steps = np.flatnonzero(kept.any(axis=(1, 2)))
        return cls(steps, kept[steps], len(kept))

    @property
    def omission(self) -> Omission:
        """What it leaves out, in numbers."""
        num_patches = self.num_steps * int(np.prod(self.kept.shape[1:]))
        return Omission(
            num_patches, num_patches - int(self.kept.sum()), self.num_steps - len(self.steps)
        )


@dataclass(frozen=True)
class Omission:
    """What an approximate answer did not look at."""

    num_patches: int
    """Of the whole clip."""
    num_dropped_patches: int
    num_dropped_steps: int
    """Frames of which nothing was shown; pairs of frames for a model that looks at pairs."""

    @property
    def dropped_share(self) -> float:
        """The share of the clip's patches that was left out."""
        return self.num_dropped_patches / self.num_patches


class Approximation(Protocol):
    """A way to leave out patches. Pure: the same clip gives the same plan."""

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        """Which patches of a clip with a video are shown."""


@dataclass(frozen=True)
class Approximate:
    """Show the target only the patches in which something has changed. The answer may differ.

    ``budget`` is a share of the clip's patches, 0.5, or their number, 256. Without one the events
    decide: nothing of a still scene is shown twice.
    """

    budget: float | int | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        """The patches that changed by more than a threshold, which the budget sets."""
        new = _novelty(clip, grid)
        if self.budget is None:
            return PatchPlan.of(_changed(new, AUTO_EVENTS))
        most = num_patches(self.budget, new.size)
        if most < new[0].size:
            return PatchPlan.of(_liveliest(new, most))
        return PatchPlan.of(_within(new, most))


@dataclass(frozen=True)
class ApproximateFrames:
    """Show the target fewer frames: those between which as much happened. The answer may differ.

    ``budget`` is how many. Without one the events decide: one of a still scene, all of a lively
    one. The last frame is always shown.
    """

    budget: int | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and (isinstance(self.budget, float) or self.budget < 1):
            raise ApproximateError(
                f"{self.budget} frames: give a whole number of them, or none to let the events"
                " decide"
            )

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        """All patches of the chosen frames."""
        new = _novelty(clip, grid)
        happened = new.mean(axis=(1, 2)).cumsum()
        num_frames = self.budget
        if num_frames is None:
            num_frames = 1 + int(happened[-1] / AUTO_FRAME_EVENTS)
        kept = np.zeros(new.shape, dtype=np.bool_)
        kept[_spread(happened, num_frames)] = True
        return PatchPlan.of(kept)


def check_budget(budget: float | int | None) -> None:
    """Raise if it is neither a share nor a number of patches."""
    if budget is None:
        return
    is_share = isinstance(budget, float) and 0.0 < budget <= 1.0
    is_number = isinstance(budget, int) and not isinstance(budget, bool) and budget >= 1
    if not (is_share or is_number):
        raise ApproximateError(
            f"a budget of {budget!r}: give a share of the patches such as 0.5, their number such"
            " as 256, or none to let the events decide"
        )


def num_patches(budget: float | int, num_all: int) -> int:
    """How many patches a budget allows of a clip that has so many; one at least."""
    wanted = round(budget * num_all) if isinstance(budget, float) else budget
    return max(1, min(wanted, num_all))


def _novelty(clip: Clip, grid: PatchGrid) -> NDArray[np.float64]:
    if clip.video is None:
        raise ApproximateError(
            "only a video can be shown in part: give the clip one, or leave approximate out"
        )
    return novelty(clip.video, clip.events, grid)


def _changed(new: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """The last step, and of each earlier one what changed before the next time it is shown."""
    kept = np.zeros(new.shape, dtype=np.bool_)
    kept[-1] = True
    since = np.zeros(new.shape[1:])
    for step in range(len(new) - 2, -1, -1):
        since += new[step + 1]
        kept[step] = since > threshold
        since[kept[step]] = 0.0
    return kept


def _within(new: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """As `_changed`, with the lowest threshold that keeps at most ``most`` patches."""
    low, high = 0.0, float(new.sum(axis=0).max())
    if int((kept := _changed(new, low)).sum()) <= most:
        return kept
    kept = _changed(new, high)
    for _ in range(24):
        middle = (low + high) / 2
        tried = _changed(new, middle)
        if int(tried.sum()) <= most:
            high, kept = middle, tried
        else:
            low = middle
    return kept


def _liveliest(new: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Of the last step, the patches in which most has happened: there is no room for all."""
    kept = np.zeros(new.shape, dtype=np.bool_)
    order = np.argsort(-new.sum(axis=0), axis=None, kind="stable")[:most]
    kept[-1].flat[order] = True
    return kept


def _spread(happened: NDArray[np.float64], num_frames: int) -> NDArray[np.intp]:
    """So many steps, the last included, at equal parts of what happened until each."""
    num_steps = len(happened)
    if num_frames >= num_steps:
        return np.arange(num_steps)
    # A little for every step, so that those of a still scene are spread as well.
    progress = happened + np.arange(num_steps) * max(1e-9, 1e-3 * float(happened[-1]))
    chosen: list[int] = []
    for number in range(num_frames):
        share = 1.0 if num_frames == 1 else number / (num_frames - 1)
        nearest = int(np.abs(progress - share * progress[-1]).argmin())
        lowest = chosen[-1] + 1 if chosen else 0
        highest = num_steps - (num_frames - number)
        chosen.append(min(max(nearest, lowest), highest))
    return np.array(chosen, dtype=np.intp)
