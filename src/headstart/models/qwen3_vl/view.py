"""Qwen3-VL's view of a clip: a chat whose video is cut into pairs of frames."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.media.video import Video
from headstart.models.chat import PartsView, timing

PAIR = 2


@dataclass(frozen=True)
class Qwen3VlView(PartsView):
    """As any chat; but the model reads the time of each pair of frames."""

    frames_per_item: int | None = PAIR

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
