"""EventGPT's config: a Llama with an event tower in front.

The published config.json has little more than the tower's name. What it leaves out has the
published model's values as defaults here.
"""

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, CLIPVisionConfig, LlamaConfig, PreTrainedConfig


@strict
class EventChatConfig(LlamaConfig):
    """Llama's fields, the tower's config, and how a window of events is cut."""

    model_type = "EventChat_llama"
    sub_configs = {"vision_config": CLIPVisionConfig}  # noqa: RUF012 - transformers' own form

    vision_config: dict[str, Any] | PreTrainedConfig | None = None
    num_slices: int = 5
    # The model was trained on windows shorter than this.
    max_window_us: int = 100_000
    # Ids below this are Llama's text; the others are placeholders, which are never said.
    num_text_tokens: int = 32_000

    def __post_init__(self, **kwargs: Any) -> None:
        """Fill in CLIP-L/14 at 336 px where no tower is described."""
        if self.vision_config is None:
            self.vision_config = CLIPVisionConfig(
                hidden_size=1024,
                intermediate_size=4096,
                num_hidden_layers=24,
                num_attention_heads=16,
                image_size=336,
                patch_size=14,
                projection_dim=768,
            )
        elif isinstance(self.vision_config, dict):
            self.vision_config = CLIPVisionConfig(**self.vision_config)
        super().__post_init__(**kwargs)


def register() -> None:
    """Register the model with vLLM, and its config with transformers, which lacks it.

    vLLM calls it in every process that it starts, maybe more than once.
    """
    from vllm import ModelRegistry

    # By name, not by class: importing the classes would start CUDA before vLLM forks.
    ModelRegistry.register_model("EventChatModel", "headstart_events.eventgpt.model:EventChatModel")
    AutoConfig.register(EventChatConfig.model_type, EventChatConfig, exist_ok=True)
