"""EventGPT's view of a clip: its slices of events, its prompt, its weights. Imports no engine."""

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
from headstart_events.rendering import latest, render, slice_by_count

EVENT_PLACEHOLDER = "<event>"

_SYSTEM = (
    "A chat between a curious human and an artificial intelligence assistant."
    " The assistant gives helpful, detailed, and polite answers to the human's questions."
)
# Applied in order, each at most once a name.
CANONICAL_NAMES: dict[re.Pattern[str], str] = {
    re.compile(r"^model\.visual_tower\.visual_tower\.(?:vision_model\.)?"): (
        "visual_tower.vision_model."
    ),
    re.compile(r"^model\.visual_projector\.0\."): "visual_projector.linear_1.",
    re.compile(r"^model\.visual_projector\.2\."): "visual_projector.linear_2.",
    re.compile(r"^model\.feature_adaptor\."): "feature_adaptor.",
    re.compile(r"^model\."): "language_model.model.",
    re.compile(r"^lm_head\."): "language_model.lm_head.",
}


def event_geometry(config: Any) -> PictureGeometry:
    if getattr(config, "use_event_qformer", False):
        raise ModelConfigError(
            "use_event_qformer is set: headstart has the published EventGPT, which pools its"
            " features instead. Use a checkpoint without it."
        )
    return PictureGeometry.of_tower(config.vision_config, config.num_slices)


def num_window_tokens(geometry: PictureGeometry, num_slices: int) -> int:
    """The tokens of a window after pooling: one for each slice and each place in the picture."""
    return num_slices + geometry.tokens_per_picture


def event_prompt(question: str, system: str = "") -> str:
    return f"{system or _SYSTEM} USER: <ev_start>{EVENT_PLACEHOLDER}<ev_end>\n{question} ASSISTANT:"


def placeholder_id(tokenizer: Any) -> int:
    """The token id of the events' placeholder in the prompt.

    The published model uses an id outside the vocabulary, which vLLM refuses. A tokenizer without
    the placeholder gives its unknown token instead, which Llama's tokenizer never produces from
    text, since it spells unknown characters in bytes.
    """
    return int(tokenizer.convert_tokens_to_ids(EVENT_PLACEHOLDER))


def place_events(tokenizer: Any, prompt: list[int]) -> list[int]:
    """Encode the text before and after the events separately, as in training.

    Encoded in one piece, characters could be joined across the placeholder, and the text after it
    would lose the mark of a text's beginning.
    """
    placeholder = placeholder_id(tokenizer)
    if placeholder in prompt:
        return prompt
    begins = prompt[:1] == [tokenizer.bos_token_id]
    text = tokenizer.decode(prompt[begins:])
    ids = [tokenizer.bos_token_id] if begins else []
    for number, words in enumerate(text.split(EVENT_PLACEHOLDER)):
        if number:
            ids.append(placeholder)
        ids += tokenizer.encode(words, add_special_tokens=False)
    return ids


def canonical_name(name: str) -> str:
    for pattern, replacement in CANONICAL_NAMES.items():
        name = pattern.sub(replacement, name)
    return name


def published_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Published name and shape of every weight of a complete checkpoint."""
    import torch
    from transformers import CLIPVisionModel, LlamaForCausalLM

    with torch.device("meta"):
        llama = LlamaForCausalLM(config).state_dict()
        tower = CLIPVisionModel(config.vision_config).state_dict()
    wide, narrow = config.hidden_size, config.vision_config.hidden_size
    return {
        **{name: tuple(tensor.shape) for name, tensor in llama.items()},
        **{
            # The published weights come from an older transformers, with one more level here.
            f"model.visual_tower.visual_tower.vision_model.{name}": tuple(tensor.shape)
            for name, tensor in tower.items()
        },
        "model.visual_projector.0.weight": (wide, narrow),
        "model.visual_projector.0.bias": (wide,),
        "model.visual_projector.2.weight": (wide, wide),
        "model.visual_projector.2.bias": (wide,),
        "model.feature_adaptor.weight": (wide, wide),
        "model.feature_adaptor.bias": (wide,),
    }


def expected_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Canonical name and shape of every weight of a complete checkpoint."""
    return {canonical_name(name): shape for name, shape in published_shapes(config).items()}


@dataclass(frozen=True)
class EventGptView:
    """How a window of events and a question become this model's prompt."""

    config: Any
    num_slices: int
    max_window_us: int
    num_text_ids: int
    num_frames: None = None  # the model is shown no frames
    frames_per_item: None = None  # each slice holds a share of all events
    chat_template: None = None  # a server's chats bring no events to a target

    @classmethod
    def from_config(cls, config: Any) -> "EventGptView":
        num_slices = event_geometry(config).num_pictures
        return cls(config, num_slices, config.max_window_us, config.num_text_tokens)

    def files(self, path: Path) -> ClipFiles:
        return ClipFiles(events=path)

    @property
    def engine_arguments(self) -> dict[str, Any]:
        """None: the model is ours."""
        return {}

    @property
    def whole(self) -> "EventGptView":
        return self

    def media(self, clip: Clip) -> dict[str, Any]:
        if clip.pictures:
            raise MediaError("EventGPT looks at events and at no still pictures; leave them out")
        return {"video": self.pictures(clip)}

    def pictures(self, clip: Clip) -> NDArray[np.uint8]:
        """Slices of equally many events, each rendered on the whole sensor.

        A window longer than those of the model's training is refused and not cut, since the caller
        has to choose the part.
        """
        if clip.events is None:
            raise MediaError("EventGPT looks at events and the clip has none; give a recording")
        if clip.events.duration_us >= self.max_window_us:
            raise MediaError(
                f"the events last {clip.events.duration_us / 1e3:.1f} ms and EventGPT reads windows"
                f" under {self.max_window_us / 1e3:.0f} ms; choose a part with --clip START:STOP,"
                " or in Python with events.between or headstart_events.rendering.latest"
            )
        if len(clip.events) < self.num_slices:
            raise MediaError(
                f"{len(clip.events)} events cannot be cut into {self.num_slices} slices;"
                " choose a longer window"
            )
        return np.stack([render(part) for part in slice_by_count(clip.events, self.num_slices)])

    def glance(self, clip: Clip) -> Clip:
        """The last events, as many as fit the model's longest window."""
        if clip.events is None:
            return clip
        return Clip(clip.video, latest(clip.events, self.max_window_us))

    def prompt(self, question: str, clip: Clip | None = None, system: str = "") -> str:
        return event_prompt(question, system)

    def check_checkpoint(self, directory: Path) -> None:
        check_checkpoint(directory, expected_shapes(self.config), canonical_name)
