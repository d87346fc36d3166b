"""EventGPT as a torch module for training, saved under the published names. Needs no vLLM.

The tower and the Llama are transformers'. Between them are two linear layers, the adaptor and the
pooling.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import CLIPVisionModel, LlamaForCausalLM


class TrainableEventGpt(LlamaForCausalLM):
    """A Llama with an event tower; its state dict has the published layout."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        wide, narrow = config.hidden_size, config.vision_config.hidden_size
        tower = CLIPVisionModel(config.vision_config)
        # Nested as deep as the published names are.
        self.model.visual_tower = nn.ModuleDict(
            {"visual_tower": nn.ModuleDict({"vision_model": tower})}
        )
        self.model.visual_projector = nn.Sequential(
            nn.Linear(narrow, wide), nn.GELU(), nn.Linear(wide, wide)
        )
        self.model.feature_adaptor = nn.Linear(wide, wide)

    def event_tokens(self, pixels: torch.Tensor) -> torch.Tensor:
        """``[slices, 3, size, size]`` to ``[tokens, hidden]``: a token a slice, then one a place.

        With a leading dimension of windows, the result has it too.
        """
        windows = pixels if pixels.dim() == 5 else pixels[None]
        tower = self.model.visual_tower["visual_tower"]["vision_model"]
        features = tower(pixel_values=windows.flatten(0, 1)).last_hidden_state
        features = self.model.feature_adaptor(self.model.visual_projector(features))
        features = features.unflatten(0, windows.shape[:2])
        tokens = torch.cat([features.mean(dim=2), features.mean(dim=1)], dim=1)
        return tokens if pixels.dim() == 5 else tokens[0]

    def save(self, directory: Path, tokenizer: Any, dtype: torch.dtype = torch.bfloat16) -> None:
        """Write config, weights and tokenizer to a directory that `headstart.models` loads."""
        from safetensors.torch import save

        self.config.dtype = dtype
        self.config.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        tensors = {
            name: tensor.detach().to(dtype).contiguous()
            for name, tensor in self.state_dict().items()
        }
        (directory / "model.safetensors").write_bytes(save(tensors, metadata={"format": "pt"}))
