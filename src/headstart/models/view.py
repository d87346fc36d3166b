"""A model's view of a clip, whatever the model.

Which frames it takes and what stands around them in the prompt are the model's own. Callers
see this port and never ask which model it is.
"""

from pathlib import Path
from typing import Any, Protocol

from headstart.errors import ModelConfigError
from headstart.models.video_llava.view import VideoLlavaView


class View(Protocol):
    """Pure and safe to share between threads."""

    @property
    def num_frames(self) -> int:
        """How many frames of a clip the model is shown."""

    def prompt(self, question: str) -> str:
        """The prompt for one question about one clip, its placeholder included."""

    def check_checkpoint(self, directory: Path) -> None:
        """Raise `CheckpointError` if the directory's weights are not this model's."""


_VIEWS = {"VideoLlavaForConditionalGeneration": VideoLlavaView.from_config}


def view_of(config: Any) -> View:
    """The view of the model a transformers config describes."""
    for architecture in config.architectures or ():
        if architecture in _VIEWS:
            return _VIEWS[architecture](config)
    raise ModelConfigError(
        f"headstart has no view for {config.architectures or config.model_type}."
        f" It can ask: {', '.join(_VIEWS)}."
    )
