"""Any vision model of vLLM, asked by its own chat template.

Most keep vLLM's own processor. Of a few headstart has one that cuts videos into parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.clip import PICTURES, Clip, ClipFiles
from headstart.media.video import Video

NUM_FRAMES = 8
"""Of a video, where nothing says how many the model is shown."""

Messages = list[dict[str, Any]]
"""A conversation as vLLM's chat takes it. The places of pictures and videos are in it, and not the
pictures."""


@dataclass(frozen=True)
class ChatView:
    """How a clip and a question become a chat.

    Frames are items of their own only where ``frames_per_item`` says so: a model's tower may look
    at several at once, and only who knows the model can say how they are cut.
    """

    config: Any
    num_text_ids: int
    num_frames: int = NUM_FRAMES
    frames_per_item: int | None = None
    chat_template: None = None  # the checkpoint's own

    @classmethod
    def from_config(cls, config: Any) -> Self:
        """The view of a checkpoint.

        All of its ids may be text: which are placeholders, its config says elsewhere.
        """
        return cls(config, config.get_text_config().vocab_size)

    @property
    def engine_arguments(self) -> Mapping[str, Any]:
        """Where videos are cut: vLLM's own model, with our processor in front of it."""
        if self.frames_per_item is None:
            return {}
        ours = [in_parts(architecture) for architecture in self.config.architectures]
        return {"hf_overrides": {"architectures": ours}}

    @property
    def whole(self) -> Self:
        return replace(self, frames_per_item=None)

    def files(self, path: Path) -> ClipFiles:
        """The clip of a single file: a picture by its suffix, else a video."""
        if path.suffix.lower() in PICTURES:
            return ClipFiles(pictures=(path,))
        return ClipFiles(video=path)

    def media(self, clip: Clip) -> dict[str, Any]:
        """The pictures, and the model's number of frames, spread uniformly over the video."""
        found: dict[str, Any] = {}
        if clip.pictures:
            found["image"] = list(clip.pictures)
        if clip.video is not None:
            found["video"] = self.shown(clip.video.sample(self.num_frames))
        if not found:
            raise MediaError("the target looks at frames and the clip has none; give a video")
        return found

    def shown(self, video: Video) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Frames and their timing, as vLLM takes a video."""
        return video.frames, self.timing(video)

    def timing(self, video: Video) -> dict[str, Any]:
        """When the frames were taken, as vLLM's processors ask it: by number and rate."""
        seconds = float(video.times_us[-1] - video.times_us[0]) / 1e6
        fps = (len(video) - 1) / seconds if seconds else 1.0
        return timing(np.arange(len(video)), fps, len(video) / fps)

    def glance(self, clip: Clip) -> Clip:
        """The whole clip: frames can be spread over any length."""
        return clip

    def prompt(self, question: str, clip: Clip | None = None, system: str = "") -> Messages:
        """One message: the pictures, the video, then the question."""
        num_pictures = 0 if clip is None else len(clip.pictures)
        kinds = ["image"] * num_pictures
        if clip is None or clip.video is not None:
            kinds.append("video")
        # vLLM accepts a name in place of an address; the media are put there after the template.
        places = [
            {"type": f"{kind}_url", f"{kind}_url": None, "uuid": f"{kind} {number}"}
            for number, kind in enumerate(kinds)
        ]
        asked = {"role": "user", "content": [*places, {"type": "text", "text": question}]}
        return [{"role": "system", "content": system}, asked] if system else [asked]

    def check_checkpoint(self, directory: Path) -> None:
        """Nothing: vLLM knows which weights its model needs, and says what is missing."""


def timing(indices: Any, fps: float, duration_s: float) -> dict[str, Any]:
    """vLLM's metadata of frames that are all shown: frame ``indices[i]`` of ``fps`` a second."""
    return {
        "fps": fps,
        "duration": duration_s,
        "total_num_frames": len(indices),
        "frames_indices": [int(index) for index in indices],
        "video_backend": "headstart",
        "do_sample_frames": False,
    }


def in_parts(architecture: str) -> str:
    """The name of our class in vLLM, next to its own."""
    return f"Headstart{architecture}"


@dataclass(frozen=True)
class FramesView(ChatView):
    """Of a model that looks at each frame alone, such as LLaVA-OneVision and InternVL3."""

    frames_per_item: int | None = 1


PAIR = 2


@dataclass(frozen=True)
class Qwen3VlView(ChatView):
    """Of a model that looks at pairs of frames, and reads the time of each pair."""

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
