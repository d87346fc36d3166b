"""A model's view of a clip: what it is shown, and which prompt.

Callers use this protocol for every model and never ask which model it is.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from headstart.media.clip import Clip, ClipFiles
from headstart.models.chat import ChatView, FramesView, Messages, Qwen3VlView
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
    def frames_per_item(self) -> int | None:
        """How many frames make a part of the prompt that stays as it is when more follow.

        As many can be computed as soon as they have arrived. None: only a whole clip can.
        """

    @property
    def engine_arguments(self) -> Mapping[str, Any]:
        """What vLLM is told so that it cuts clips into these parts, by its names."""

    @property
    def chat_template(self) -> str | None:
        """The template of a server's chats; None where the checkpoint has its own."""

    @property
    def whole(self) -> "View":
        """The same view for an engine that is left as it is, without our parts."""

    def files(self, path: Path) -> ClipFiles:
        """The clip of a single file: a video for one model, events for another."""

    def media(self, clip: Clip) -> Mapping[str, Any]:
        """What the model is shown of a clip, as vLLM's ``multi_modal_data``.

        Raises `MediaError` where the clip has no frames or no events for it.
        """

    def glance(self, clip: Clip) -> Clip:
        """The newest part of a clip, no longer than the model can be shown."""

    def prompt(self, question: str, clip: Clip | None = None, system: str = "") -> str | Messages:
        """What is asked about one clip: a prompt with its placeholder, or a chat that the model's
        own template makes a prompt of. Without a clip, about one of the usual kind."""

    def check_checkpoint(self, directory: Path) -> None:
        """Raise `CheckpointError` if the directory's weights are not this model's."""


_VIEWS: dict[str, Callable[[Any], View]] = {
    "VideoLlavaForConditionalGeneration": VideoLlavaView.from_config,
    "Qwen3VLForConditionalGeneration": Qwen3VlView.from_config,
    "Qwen3VLMoeForConditionalGeneration": Qwen3VlView.from_config,
    "LlavaOnevisionForConditionalGeneration": FramesView.from_config,
    "InternVLForConditionalGeneration": FramesView.from_config,
}


ENTRY_POINTS = "headstart.models"
"""The group under which a package registers the view of a model: the name of an architecture, and a
function that makes a `View` of the model's config."""


def view_of(config: Any) -> View:
    """The view of the model a transformers config describes; a chat, where none is its own."""
    for architecture in config.architectures or ():
        if architecture in _VIEWS:
            return _VIEWS[architecture](config)
        for found in entry_points(group=ENTRY_POINTS, name=architecture):
            view: View = found.load()(config)
            return view
    return ChatView.from_config(config)
