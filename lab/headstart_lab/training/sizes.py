"""The sizes of the lab's two models; each size builds an untrained model.

Both vision towers take pictures of the size in which the world is drawn, so nothing is resized. The
two checkpoints together take at most 80 MB in bf16.
"""

from dataclasses import dataclass, field
from typing import Any

from headstart.errors import ModelConfigError
from headstart_lab.tiny import PLACEHOLDERS

ROUND_VOCABULARY = 64


@dataclass(frozen=True)
class TowerSize:
    """A CLIP tower; ``num_layers`` counts the layers that are used."""

    image_size: int = 168
    patch_size: int = 21
    hidden: int = 192
    num_layers: int = 6
    num_heads: int = 3

    @property
    def grid(self) -> int:
        """Patches along each side."""
        return self.image_size // self.patch_size

    @property
    def tokens_per_picture(self) -> int:
        """One a patch, and the class token."""
        return self.grid**2 + 1

    def config(self, num_unused: int = 0) -> Any:
        """transformers' config, with layers behind the used ones if the model's layout has them."""
        from transformers import CLIPVisionConfig

        return CLIPVisionConfig(
            hidden_size=self.hidden,
            intermediate_size=4 * self.hidden,
            num_hidden_layers=self.num_layers + num_unused,
            num_attention_heads=self.num_heads,
            image_size=self.image_size,
            patch_size=self.patch_size,
        )


@dataclass(frozen=True)
class LlamaSize:
    """A Llama without shared key and value heads."""

    hidden: int
    intermediate: int
    num_layers: int
    num_heads: int
    max_tokens: int = 2048

    def __post_init__(self) -> None:
        if self.hidden % self.num_heads:
            raise ModelConfigError(
                f"{self.hidden} is not a multiple of {self.num_heads} heads; change either"
            )

    def fields(self, tokenizer: Any) -> dict[str, Any]:
        """The same sizes under transformers' names."""
        return {
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.num_layers,
            "num_attention_heads": self.num_heads,
            "max_position_embeddings": self.max_tokens,
            "vocab_size": -(-len(tokenizer) // ROUND_VOCABULARY) * ROUND_VOCABULARY,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        }


@dataclass(frozen=True)
class TargetSize:
    """A Video-LLaVA: 8 frames are 520 tokens by default."""

    tower: TowerSize = field(default_factory=lambda: TowerSize(hidden=256, num_heads=4))
    llama: LlamaSize = field(default_factory=lambda: LlamaSize(320, 832, 8, 5))
    num_frames: int = 8

    @property
    def num_tokens(self) -> int:
        """How many tokens a clip's frames take."""
        return self.num_frames * self.tower.tokens_per_picture

    def config(self, tokenizer: Any) -> Any:
        """transformers' config."""
        from transformers import LlamaConfig, VideoLlavaConfig

        image_token, video_token, pad_token = tokenizer.convert_tokens_to_ids(list(PLACEHOLDERS))
        return VideoLlavaConfig(
            # The published model reads the last layer but one.
            vision_config=self.tower.config(num_unused=1),
            vision_feature_layer=-2,
            text_config=LlamaConfig(**self.llama.fields(tokenizer)),
            image_token_index=image_token,
            video_token_index=video_token,
            image_seq_length=self.tower.tokens_per_picture - 1,
            video_seq_length=self.num_tokens,
            pad_token_id=pad_token,
        )

    def build(self, tokenizer: Any) -> Any:
        """A model with fresh weights from torch's current seed."""
        from transformers import VideoLlavaForConditionalGeneration

        return VideoLlavaForConditionalGeneration(self.config(tokenizer))


@dataclass(frozen=True)
class DrafterSize:
    """An EventGPT: 5 slices are 70 tokens by default, one a slice and one a place."""

    tower: TowerSize = field(default_factory=TowerSize)
    llama: LlamaSize = field(default_factory=lambda: LlamaSize(256, 688, 4, 4))
    num_slices: int = 5

    def config(self, tokenizer: Any) -> Any:
        """The config under the published name."""
        from headstart_events.eventgpt.config import EventChatConfig

        return EventChatConfig(
            architectures=["EventChatModel"],
            vision_config=self.tower.config(),
            num_slices=self.num_slices,
            # Placeholders come after the text, in this order.
            num_text_tokens=tokenizer.convert_tokens_to_ids(PLACEHOLDERS[0]),
            **self.llama.fields(tokenizer),
        )

    def build(self, tokenizer: Any) -> Any:
        """A model with fresh weights from torch's current seed."""
        from headstart_lab.training.eventgpt import TrainableEventGpt

        return TrainableEventGpt(self.config(tokenizer))


@dataclass(frozen=True)
class PairSize:
    """The sizes of both models."""

    target: TargetSize = field(default_factory=TargetSize)
    drafter: DrafterSize = field(default_factory=DrafterSize)
