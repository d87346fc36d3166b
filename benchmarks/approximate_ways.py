"""The ways to show the target less of a clip that are compared, and the lab's questions to all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headstart.bridges.kv_bridge import ApproximateKv
from headstart.engine.headstart import Headstart
from headstart.engine.manner import Manner
from headstart.engine.session import Session
from headstart.media.approximate import (
    Approximate,
    ApproximateFrames,
    Approximation,
    PatchPlan,
    num_patches,
)
from headstart.media.clip import Clip
from headstart.media.patches import PatchGrid
from headstart.media.video import Video

WHOLE = "whole clip"


@dataclass(frozen=True)
class EvenPatches:
    """A share of the patches of every frame, without a look at them: what guiding must beat."""

    budget: float

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        """As many patches of each frame, drawn by the number of the frame."""
        assert clip.video is not None
        num_steps = grid.num_steps(len(clip.video))
        kept = np.zeros((num_steps, grid.rows * grid.columns), dtype=np.bool_)
        # What does not divide is spread over the frames.
        ends = np.arange(1, num_steps + 1) * num_patches(self.budget, kept.size) // num_steps
        for step, count in enumerate(np.diff(ends, prepend=0)):
            drawn = np.random.default_rng(step).permutation(kept.shape[1])
            kept[step, drawn[:count]] = True
        return PatchPlan.of(kept.reshape(num_steps, grid.rows, grid.columns))


@dataclass(frozen=True)
class OldestWhole:
    """As `Approximate`, told backwards: the first frame is whole, and later ones show changes."""

    budget: float

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        """The plan of the clip that runs backwards."""
        assert clip.video is not None
        frames, times_us = clip.video.frames[::-1], clip.video.times_us
        backwards = Clip(Video(np.ascontiguousarray(frames), times_us))
        plan = Approximate(self.budget).plan(backwards, grid)
        kept = np.zeros((plan.num_steps, grid.rows, grid.columns), dtype=np.bool_)
        kept[plan.steps] = plan.kept
        return PatchPlan.of(kept[::-1])


@dataclass(frozen=True)
class Way:
    """One way, under the name of its row."""

    name: str
    approximation: Approximation | ApproximateKv | None = None
    num_frames: int | None = None
    """Only so many frames are handed over, the newest among them, and the target sees all."""
    is_preview: bool = False
    """The approximate answer is a preview only, and the exact one follows."""

    @property
    def guesses_kv(self) -> bool:
        """Whether it needs the engine with a KV bridge."""
        return isinstance(self.approximation, ApproximateKv)

    def session(self, headstart: Headstart) -> Session:
        """A camera that is asked in this way, and shares nothing with the other ways."""
        if self.is_preview:
            manner = Manner(approximate_preview=self.approximation)
        else:
            manner = Manner(approximate=self.approximation)
        return headstart.session("front camera", tenant=self.name, manner=manner)

    def clip(self, clip: Clip) -> Clip:
        """What is handed over of a clip."""
        if self.num_frames is None or clip.video is None:
            return clip
        last = len(clip.video) - 1
        chosen = last - np.linspace(0, last, self.num_frames).astype(np.int64)[::-1]
        return replace(clip, video=Video(clip.video.frames[chosen], clip.video.times_us[chosen]))


def all_ways() -> Sequence[Way]:
    """Every way, the whole clip first; those of a budget stand together."""
    budgets = zip((0.5, 0.25, 0.1), (4, 2, 1), strict=True)
    compared = [
        way
        for share, num in budgets
        for way in (
            Way(f"events {share:.0%}", Approximate(share)),
            Way(f"even {share:.0%}", EvenPatches(share)),
            Way(f"short clip {num}", num_frames=num),
            Way(f"frames {num}", ApproximateFrames(num)),
        )
    ]
    return (
        Way(WHOLE),
        *compared,
        Way("events 75%", Approximate(0.75)),
        Way("even 75%", EvenPatches(0.75)),
        Way("events auto", Approximate()),
        Way("frames auto", ApproximateFrames()),
        Way("oldest whole 50%", OldestWhole(0.5)),
        Way("oldest whole 25%", OldestWhole(0.25)),
    )


def kv_way(directory: Path, *, is_preview: bool = False) -> Way:
    """Answers by a KV bridge."""
    name = "KV bridge, previewed" if is_preview else "KV bridge"
    return Way(name, ApproximateKv(directory), is_preview=is_preview)


def preview_ways() -> Sequence[Way]:
    """Exact answers, each with the preview of an approximate one before it."""
    return (
        *(
            Way(f"frames {num}, previewed", ApproximateFrames(num), is_preview=True)
            for num in (4, 2, 1)
        ),
        *(
            Way(f"events {share:.0%}, previewed", Approximate(share), is_preview=True)
            for share in (0.5, 0.25, 0.1)
        ),
    )
