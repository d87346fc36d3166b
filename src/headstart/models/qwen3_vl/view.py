"""Qwen3-VL's view of a clip: a chat whose video is cut into pairs of frames."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.approximate import Approximation, PatchPlan
from headstart.media.clip import Clip
from headstart.media.patches import PatchGrid
from headstart.media.video import Video
from headstart.models.chat.parts_view import PartsView, in_part
from headstart.models.chat.view import timing
from headstart.models.kept_patches import planned

PAIR = 2


@dataclass(frozen=True)
class Qwen3VlView(PartsView):
    """As any chat; but the model reads the time of each pair of frames."""

    frames_per_item: int | None = PAIR
    is_approximate: bool = False

    @property
    def engine_arguments(self) -> Mapping[str, Any]:
        """As of other chats in parts; where patches may be left out, the class that can."""
        if not self.is_approximate:
            return super().engine_arguments
        ours = [in_part(architecture) for architecture in self.config.architectures]
        return {"hf_overrides": {"architectures": ours}}

    @property
    def approximate(self) -> Self:
        """The same for an engine that may leave out patches."""
        return replace(self, is_approximate=True)

    @property
    def whole(self) -> Self:
        """Without parts, unless patches are to be left out of them."""
        return self if self.is_approximate else super().whole

    def plan(self, clip: Clip, approximation: Approximation) -> PatchPlan:
        """Which patches of each pair are shown, on the grid of the frames as they are.

        Where vLLM scales the frames down, `KeptPatches.on` carries the plan to the coarser grid.
        """
        if clip.video is None or clip.pictures:
            raise MediaError(
                "an approximate question is about a video alone: leave the pictures out, and give"
                " a video"
            )
        video = clip.video.sample(self.num_frames)
        vision = self.config.vision_config
        side = vision.patch_size * vision.spatial_merge_size
        rows, columns = (max(1, round(pixels / side)) for pixels in video.frames.shape[1:3])
        grid = PatchGrid(rows, columns, frames_per_step=PAIR)
        return approximation.plan(replace(clip, video=video), grid)

    def media(self, clip: Clip, plan: PatchPlan | None = None) -> dict[str, Any]:
        """As of any chat; with a plan, only that of the video."""
        found = super().media(clip)
        if plan is not None:
            frames, timing = found["video"]
            found["video"] = frames, {**timing, **planned(plan)}
        return found

    def shown(self, video: Video) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Its frames; one alone is shown twice, since the model takes no fewer than a pair."""
        frames, timing = super().shown(video)
        if len(frames) > 1:
            return frames, timing
        return np.repeat(frames, PAIR, axis=0), {
            **timing,
            "total_num_frames": PAIR,
            "frames_indices": timing["frames_indices"] * PAIR,
        }

    def timing(self, video: Video) -> dict[str, Any]:
        """In microseconds since the first frame: no later frame changes what an earlier one has."""
        since_us = video.times_us - video.times_us[0]
        return timing(since_us, 1e6, float(since_us[-1]) / 1e6)
