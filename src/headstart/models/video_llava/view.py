"""Video-LLaVA's view of a clip: which frames, which words, which weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.models.checkpoint import check_checkpoint
from headstart.models.video_llava.geometry import video_geometry
from headstart.models.video_llava.prompt import video_prompt
from headstart.models.video_llava.weights import canonical_name, expected_shapes


@dataclass(frozen=True)
class VideoLlavaView:
    """How a clip and a question become this model's prompt."""

    config: Any
    num_frames: int

    @classmethod
    def from_config(cls, config: Any) -> "VideoLlavaView":
        """The view of one checkpoint."""
        return cls(config, video_geometry(config).num_pictures)

    def prompt(self, question: str) -> str:
        """The text around the video."""
        return video_prompt(question)

    def check_checkpoint(self, directory: Path) -> None:
        """Raise if a local checkpoint is not a complete Video-LLaVA."""
        check_checkpoint(directory, expected_shapes(self.config), canonical_name)
