"""A model's view of a clip: which pictures it is shown, and which prompt.

Callers use this protocol for every model and never ask which model it is.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.errors import ModelConfigError
from headstart.media.clip import Clip, ClipFiles
from headstart.models.eventgpt.view import EventGptView
from headstart.models.video_llava.view import VideoLlavaView


class View(Protocol):
    """How a model sees a clip. Pure, and safe to share between threads."""

    @property
    def num_frames(self) -> int | None:
        """How many of a video's frames the model is shown; None for a model without video."""

    @property
    def num_text_ids(self) -> int:
        """Token ids below this are text; the others are placeholders, never said or drafted."""

    @property
    def frames_are_items(self) -> bool:
        """Whether a frame's part of the prompt stays the same as more frames follow it.

        Then frames can be computed as they arrive.
        """

    def files(self, path: Path) -> ClipFiles:
        """The clip of a single file: a video for one model, events for another."""

    def pictures(self, clip: Clip) -> NDArray[np.uint8]:
        """The pictures of a clip that the model is shown, uint8 [n, height, width, 3].

        Raises `MediaError` where the clip has no frames or no events for them.
        """

    def glance(self, clip: Clip) -> Clip:
        """The newest part of a clip, no longer than the model can be shown."""

    def prompt(self, question: str) -> str:
        """The prompt of one question about one clip, including the placeholder."""

    def check_checkpoint(self, directory: Path) -> None:
        """Raise `CheckpointError` if the directory's weights are not this model's."""


_VIEWS: dict[str, Callable[[Any], View]] = {
    "VideoLlavaForConditionalGeneration": VideoLlavaView.from_config,
    "EventChatModel": EventGptView.from_config,
}


def view_of(config: Any) -> View:
    """The view of the model a transformers config describes."""
    for architecture in config.architectures or ():
        if architecture in _VIEWS:
            return _VIEWS[architecture](config)
    raise ModelConfigError(
        f"headstart has no view for {config.architectures or config.model_type}."
        f" It can ask: {', '.join(_VIEWS)}."
    )
