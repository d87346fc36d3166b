"""The names of EventGPT's weights, as published and in vLLM's modules."""

import re
from typing import Any

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


def canonical_name(name: str) -> str:
    """vLLM's name of a weight published under ``name``."""
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
