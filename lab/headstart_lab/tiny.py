"""Small checkpoints with random weights, for trying and testing headstart.

Except for their size they are laid out like the published 7B models, so the same code loads them.
They are not trained, so their answers are noise.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from headstart_lab.tokenizer import train_tokenizer

# In the order of the published tokenizer, right after the text.
PLACEHOLDERS = ("<image>", "<video>", "<pad>")

# Far above a trained model's, so that a random model answers differently to different clips instead
# of repeating one token.
_SPREAD = 0.25

_SENTENCES = (
    "A white car drives ahead of us on the left lane of a wide road.",
    "Two people wait at the crossing while the light is red.",
    "It is raining, the road is wet and the street lights are on.",
    "There are trees and houses on both sides of the street.",
    "USER: What is happening in this scene? ASSISTANT: The bus has stopped.",
    "USER: Is it safe to turn right? ASSISTANT: No, a cyclist is coming from behind.",
)


@dataclass(frozen=True)
class TinyVideoLlava:
    """The size of a random Video-LLaVA. With the defaults it answers in seconds on one core."""

    image_size: int = 56
    patch_size: int = 14
    num_frames: int = 8
    vision_size: int = 64
    vision_layers: int = 3
    text_size: int = 128
    text_layers: int = 2
    num_heads: int = 4
    num_key_value_heads: int = 2
    max_tokens: int = 512
    seed: int = 0

    @classmethod
    def real_geometry(cls) -> Self:
        """Narrow, but with the published frames: 224 px, patch 14, 8 frames, 2056 tokens."""
        return cls(image_size=224, max_tokens=4096)

    def save(self, directory: Path) -> None:
        """Write config, weights, tokenizer and preprocessor, as transformers does."""
        import torch
        from transformers import VideoLlavaForConditionalGeneration, VideoLlavaImageProcessor

        tokenizer = train_tokenizer(_SENTENCES, max_pieces=512, added_tokens=PLACEHOLDERS)
        tokenizer.pad_token = "<pad>"
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            model = VideoLlavaForConditionalGeneration(self._config(tokenizer))
        model.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        VideoLlavaImageProcessor(
            size={"shortest_edge": self.image_size},
            crop_size={"height": self.image_size, "width": self.image_size},
        ).save_pretrained(directory)

    def _config(self, tokenizer: Any) -> Any:
        from transformers import CLIPVisionConfig, LlamaConfig, VideoLlavaConfig

        image_token, video_token, pad_token = tokenizer.convert_tokens_to_ids(list(PLACEHOLDERS))
        return VideoLlavaConfig(
            vision_config=CLIPVisionConfig(
                hidden_size=self.vision_size,
                intermediate_size=2 * self.vision_size,
                num_hidden_layers=self.vision_layers,
                num_attention_heads=self.num_heads,
                image_size=self.image_size,
                patch_size=self.patch_size,
                initializer_range=_SPREAD,
                initializer_factor=4.0,
            ),
            text_config=LlamaConfig(
                hidden_size=self.text_size,
                intermediate_size=2 * self.text_size,
                num_hidden_layers=self.text_layers,
                num_attention_heads=self.num_heads,
                num_key_value_heads=self.num_key_value_heads,
                max_position_embeddings=self.max_tokens,
                vocab_size=-(-len(tokenizer) // 64) * 64,
                initializer_range=_SPREAD,
                pad_token_id=pad_token,
            ),
            image_token_index=image_token,
            video_token_index=video_token,
            image_seq_length=(self.image_size // self.patch_size) ** 2,
            video_seq_length=self.num_frames * ((self.image_size // self.patch_size) ** 2 + 1),
            pad_token_id=pad_token,
        )


@dataclass(frozen=True)
class TinyEventGpt:
    """The size of a random EventGPT. With the defaults it answers in seconds on one core."""

    image_size: int = 56
    patch_size: int = 14
    num_slices: int = 5
    vision_size: int = 64
    vision_layers: int = 2
    text_size: int = 128
    text_layers: int = 2
    num_heads: int = 4
    max_tokens: int = 512
    seed: int = 0

    @classmethod
    def real_geometry(cls) -> Self:
        """Narrow, but with the published slices: 336 px, patch 14, 5 slices, 582 tokens."""
        return cls(image_size=336, max_tokens=2048)

    def save(self, directory: Path) -> None:
        """Write config, weights under the published names, and tokenizer."""
        import torch
        from safetensors.torch import save

        from headstart_events.eventgpt.view import published_shapes

        tokenizer = train_tokenizer(_SENTENCES, max_pieces=512)
        config = self._config(tokenizer)
        generator = torch.Generator().manual_seed(self.seed)
        tensors = {
            name: torch.ones(shape)
            if "norm" in name and name.endswith("weight")
            else torch.randn(shape, generator=generator) * _SPREAD
            for name, shape in published_shapes(config).items()
        }
        config.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        (directory / "model.safetensors").write_bytes(save(tensors, metadata={"format": "pt"}))

    def _config(self, tokenizer: Any) -> Any:
        from transformers import CLIPVisionConfig

        from headstart_events.eventgpt.config import EventChatConfig

        return EventChatConfig(
            architectures=["EventChatModel"],
            vision_config=CLIPVisionConfig(
                hidden_size=self.vision_size,
                intermediate_size=2 * self.vision_size,
                num_hidden_layers=self.vision_layers,
                num_attention_heads=self.num_heads,
                image_size=self.image_size,
                patch_size=self.patch_size,
            ),
            num_slices=self.num_slices,
            num_text_tokens=len(tokenizer),
            hidden_size=self.text_size,
            intermediate_size=2 * self.text_size,
            num_hidden_layers=self.text_layers,
            num_attention_heads=self.num_heads,
            max_position_embeddings=self.max_tokens,
            vocab_size=-(-len(tokenizer) // 64) * 64,
        )
