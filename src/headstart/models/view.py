"""A model's view of a clip, whatever the model.

What it looks at, how that is cut and drawn, and what stands around it in the prompt are the
model's own. Callers see this port and never ask which model it is.
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
    """Pure and safe to share between threads."""

    @property
    def num_frames(self) -> int | None:
        """How many of a video's frames it looks at; none if it looks at no video."""

    @property
    def num_text_ids(self) -> int:
        """Ids below this are text; the others hold places and are never said or drafted."""

    def files(self, path: Path) -> ClipFiles:
        """What a single file is to this model: a video, or a recording of events."""

    def pictures(self, clip: Clip) -> NDArray[np.uint8]:
        """What the model is shown of a clip, uint8 [n, height, width, 3].

        Raises `MediaError` where the clip lacks what the model looks at.
        """

    def glance(self, clip: Clip) -> Clip:
        """The newest part of a clip, no longer than the model can look at."""

    def prompt(self, question: str) -> str:
        """The prompt for one question about one clip, its placeholder included."""

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
