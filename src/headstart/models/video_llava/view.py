"""Video-LLaVA's view of a clip: its frames, its prompt, its weights. Imports no engine."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError, ModelConfigError
from headstart.media.clip import Clip, ClipFiles
from headstart.models.checkpoint import check_checkpoint
from headstart.models.geometry import PictureGeometry

VIDEO_PLACEHOLDER = "<video>"
CANONICAL_NAMES: dict[re.Pattern[str], str] = {
    re.compile(r"^(?:model\.)?(image|video)_tower\.(?:vision_model\.)?"): (
        r"\1_tower.vision_model."
    ),
    re.compile(r"^model\.multi_modal_projector\."): "multi_modal_projector.",
    re.compile(r"^model\.language_model\."): "language_model.model.",
    re.compile(r"^lm_head\."): "language_model.lm_head.",
}
"""Applied in order, each at most once a name; they make the published one of any layout.

There are three: the published checkpoint (``video_tower.vision_model.`` and
``language_model.model.``), what transformers 5 writes (the same without ``vision_model.``), and
transformers' module names (``model.`` before everything). vLLM's modules have the published one.
"""
# The model is asked about video only, so the tower for still images is not loaded.
UNUSED_NAMES = re.compile(r"^image_tower\.")


def video_prompt(question: str, system: str = "") -> str:
    before = f"{system} " if system else ""
    return f"{before}USER: {VIDEO_PLACEHOLDER}\n{question} ASSISTANT:"


CHAT_TEMPLATE = (
    # vLLM's chat routes leave the tokenizer's first token to the template.
    "{{ bos_token or '' }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %} ASSISTANT: {{ message['content'] }}"
    "{% elif message['role'] == 'system' %}{{ message['content'] }}"
    "{% else %}{% if not loop.first %} {% endif %}USER: {{ message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %} ASSISTANT:{% endif %}"
)
"""The same prompt for vLLM's chat routes, which put the placeholder before the question."""


def video_geometry(config: Any) -> PictureGeometry:
    if not isinstance(config.vision_feature_layer, int):
        raise ModelConfigError(
            f"vision_feature_layer is {config.vision_feature_layer!r}; Video-LLaVA reads one"
            " layer. Set it to a single integer in config.json (the published value is -2)."
        )
    one = PictureGeometry.of_tower(config.vision_config, num_pictures=1)
    num_frames, rest = divmod(config.video_seq_length, one.tokens_per_picture)
    if rest or not num_frames:
        raise ModelConfigError(
            f"video_seq_length {config.video_seq_length} is not a whole number of frames of"
            f" {one.tokens_per_picture} tokens. Correct video_seq_length in config.json."
        )
    return PictureGeometry.of_tower(config.vision_config, num_frames)


@dataclass(frozen=True)
class VideoLlavaView:
    """How a clip and a question become this model's prompt."""

    config: Any
    num_frames: int
    num_text_ids: int
    frames_per_item: int = 1  # the processor makes an item of each frame
    chat_template: str = CHAT_TEMPLATE  # published checkpoints have none

    @classmethod
    def from_config(cls, config: Any) -> "VideoLlavaView":
        """The view of a checkpoint, whose placeholder ids come after its text ids."""
        num_text_ids = min(config.image_token_index, config.video_token_index)
        return cls(config, video_geometry(config).num_pictures, num_text_ids)

    def files(self, path: Path) -> ClipFiles:
        return ClipFiles(video=path)

    @property
    def engine_arguments(self) -> dict[str, Any]:
        """None: the model is ours, and always cuts videos into frames."""
        return {}

    @property
    def whole(self) -> "VideoLlavaView":
        return self

    def media(self, clip: Clip) -> dict[str, Any]:
        if clip.pictures:
            raise MediaError(
                "Video-LLaVA looks at a video and at no still pictures; leave them out"
            )
        return {"video": self.pictures(clip)}

    def pictures(self, clip: Clip) -> NDArray[np.uint8]:
        """The model's number of frames, spread uniformly over the clip."""
        if clip.video is None:
            raise MediaError("Video-LLaVA looks at frames and the clip has none; give a video")
        return clip.video.sample(self.num_frames).frames

    def glance(self, clip: Clip) -> Clip:
        """The whole clip: frames can be spread over any length."""
        return clip

    def prompt(self, question: str, clip: Clip | None = None, system: str = "") -> str:
        return video_prompt(question, system)

    def check_checkpoint(self, directory: Path) -> None:
        check_checkpoint(directory, expected_shapes(self.config), canonical_name)


def canonical_name(name: str) -> str:
    """The published name of a weight saved under any known layout."""
    for pattern, replacement in CANONICAL_NAMES.items():
        name = pattern.sub(replacement, name)
    return name


def expected_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Canonical name and shape of every weight of a complete checkpoint.

    They are those of transformers' own class, built on the meta device, which takes no memory.
    """
    import torch
    from transformers import VideoLlavaForConditionalGeneration

    with torch.device("meta"):
        model = VideoLlavaForConditionalGeneration(config)
    return {
        canonical_name(name): tuple(tensor.shape) for name, tensor in model.state_dict().items()
    }
