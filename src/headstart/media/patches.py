"""The patches a model cuts a clip's frames into, and how much is new in each of them.

What is new is told by events: those of the clip, or those an ideal event camera would have given.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headstart.media.events import Events
from headstart.media.simulation import count_events
from headstart.media.video import Video

MAX_SIDE = 128
"""Of frames that events are simulated from: more pixels tell no more about a patch."""


@dataclass(frozen=True)
class PatchGrid:
    """Rows and columns of equal patches over each frame, or over each step of several frames."""

    rows: int
    columns: int
    is_square: bool = False
    """Whether they cover the largest square in the middle of a frame, and not the whole."""
    frames_per_step: int = 1
    """How many frames the model looks at together; their patches are one."""

    def num_steps(self, num_frames: int) -> int:
        """How many steps so many frames make. A last one may have fewer frames."""
        return -(-num_frames // self.frames_per_step)

    def box(self, height: float, width: float) -> tuple[float, float, float, float]:
        """The top, left, height and width of what the patches cover in a picture of this size."""
        if not self.is_square:
            return 0.0, 0.0, height, width
        side = min(height, width)
        return (height - side) / 2, (width - side) / 2, side, side


def novelty(video: Video, events: Events | None, grid: PatchGrid) -> NDArray[np.float64]:
    """The events in each patch since the step before, a pixel; [steps, rows, columns].

    The first step has none: nothing came before it. ``events`` count where they span the frames.
    """
    if events is not None and _spans(events, video.times_us):
        pieces = _recorded(events, video.times_us, grid)
    else:
        pieces = _simulated(video.frames, grid)
    steps = np.zeros((grid.num_steps(len(video)), grid.rows, grid.columns))
    for number in range(1, len(video)):
        steps[number // grid.frames_per_step] += pieces[number]
    steps[0] = 0.0
    return steps


def _spans(events: Events, times_us: NDArray[np.int64]) -> bool:
    """Whether the recording runs from the first frames to the last ones, and has not one end."""
    if len(events) == 0 or len(times_us) < 2:
        return False
    return bool(events.t[0] <= times_us[1] and events.t[-1] >= times_us[-2])


def _recorded(
    events: Events, times_us: NDArray[np.int64], grid: PatchGrid
) -> list[NDArray[np.float64]]:
    """Of each frame, the events since the frame before; both cameras have the same field of view.

    Of cameras with different ones no plan would be right: `headstart events` can rectify them.
    """
    height, width = events.sensor.height, events.sensor.width
    top, left, box_height, box_width = grid.box(height, width)
    row = np.floor((events.y + 0.5 - top) * grid.rows / box_height).astype(np.intp)
    column = np.floor((events.x + 0.5 - left) * grid.columns / box_width).astype(np.intp)
    inside = (row >= 0) & (row < grid.rows) & (column >= 0) & (column < grid.columns)
    cells = row * grid.columns + column
    num_pixels = box_height * box_width / (grid.rows * grid.columns)
    bounds = np.searchsorted(events.t, times_us)
    pieces = [np.zeros((grid.rows, grid.columns))]
    for start, stop in pairwise(bounds):
        counted = cells[start:stop][inside[start:stop]]
        counts = np.bincount(counted, minlength=grid.rows * grid.columns) / num_pixels
        pieces.append(counts.reshape(grid.rows, grid.columns))
    return pieces


def _simulated(frames: NDArray[np.uint8], grid: PatchGrid) -> list[NDArray[np.float64]]:
    top, left, box_height, box_width = (int(side) for side in grid.box(*frames.shape[1:3]))
    covered = frames[:, top : top + box_height, left : left + box_width]
    # No patch may lose all of its pixels.
    finest = max(1, min(box_height // grid.rows, box_width // grid.columns))
    stride = min(finest, -(-max(box_height, box_width) // MAX_SIDE))
    return [_pooled(counts, grid) for counts in count_events(covered[:, ::stride, ::stride])]


def _pooled(counts: NDArray[np.float64], grid: PatchGrid) -> NDArray[np.float64]:
    """The mean of each patch's pixels. A picture may have fewer pixels than patches on a side."""
    rows = _edges(counts.shape[0], grid.rows)
    columns = _edges(counts.shape[1], grid.columns)
    summed = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))
    summed[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    below, above = rows[1:], rows[:-1]
    right, left = columns[1:], columns[:-1]
    total = (
        summed[np.ix_(below, right)]
        - summed[np.ix_(above, right)]
        - summed[np.ix_(below, left)]
        + summed[np.ix_(above, left)]
    )
    areas = np.outer(below - above, right - left)
    return np.asarray(total / np.maximum(areas, 1))


def _edges(num_pixels: int, num_patches: int) -> NDArray[np.intp]:
    return np.arange(num_patches + 1) * num_pixels // num_patches
