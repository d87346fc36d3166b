"""EventGPT written again in plain torch, from its description: what vLLM's is held against.

Knows nothing of our model's code. The tower and the Llama are transformers'; everything
between them, and how the prompt becomes ids, is spelled out.
"""

from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn.functional import gelu, linear
from transformers import AutoTokenizer, CLIPVisionModel, LlamaConfig, LlamaForCausalLM

MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073])
STD = torch.tensor([0.26862954, 0.26130258, 0.27577711])


class EventGptReference:
    """The published computation in float32, with the adaptor applied as often as asked."""

    def __init__(self, checkpoint: Path, config) -> None:
        self.weights = load_file(checkpoint / "model.safetensors")
        self.tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        self.size = config.vision_config.image_size
        self.tower = CLIPVisionModel(config.vision_config).eval()
        self.tower.load_state_dict(self._part("model.visual_tower.visual_tower.vision_model."))
        values = config.to_dict()
        for name in ("vision_config", "model_type", "architectures"):
            values.pop(name, None)
        self.llama = LlamaForCausalLM(LlamaConfig(**values)).eval()
        self.llama.load_state_dict(
            {
                name: tensor
                for name, tensor in self.weights.items()
                if name.startswith(("model.embed_tokens", "model.layers", "model.norm", "lm_head"))
            }
        )

    def _part(self, prefix: str) -> dict[str, torch.Tensor]:
        return {k.removeprefix(prefix): v for k, v in self.weights.items() if k.startswith(prefix)}

    def pixels(self, picture) -> torch.Tensor:
        """CLIP's preprocessing: shortest edge, bicubic; centre crop; scale; normalise."""
        image = Image.fromarray(picture)
        width, height = image.size
        short = min(width, height)
        scaled = (int(self.size * width / short), int(self.size * height / short))
        image = image.resize(scaled, Image.Resampling.BICUBIC)
        left, top = (scaled[0] - self.size) // 2, (scaled[1] - self.size) // 2
        image = image.crop((left, top, left + self.size, top + self.size))
        values = torch.tensor(list(image.tobytes()), dtype=torch.float32)
        values = values.reshape(self.size, self.size, 3) / 255
        return ((values - MEAN) / STD).permute(2, 0, 1)

    @torch.no_grad()
    def event_tokens(self, slices, num_adaptors: int = 1) -> torch.Tensor:
        pixels = torch.stack([self.pixels(picture) for picture in slices])
        features = self.tower(pixel_values=pixels).last_hidden_state
        w = self.weights
        for layer in ("model.visual_projector.0", "model.visual_projector.2"):
            features = linear(features, w[f"{layer}.weight"], w[f"{layer}.bias"])
            features = gelu(features) if layer.endswith("0") else features
        for _ in range(num_adaptors):
            features = linear(
                features, w["model.feature_adaptor.weight"], w["model.feature_adaptor.bias"]
            )
        per_slice = torch.stack([features[i].mean(dim=0) for i in range(len(features))])
        per_place = torch.stack([features[:, j].mean(dim=0) for j in range(features.shape[1])])
        return torch.cat([per_slice, per_place])

    @torch.no_grad()
    def answer(self, slices, prompt: str, max_tokens: int, num_adaptors: int = 1):
        """Greedy tokens, the logits of every step, and the length of the prompt."""
        before, after = prompt.split("<event>")
        before_ids = self.tokenizer(before)["input_ids"]
        after_ids = self.tokenizer(after)["input_ids"][1:]  # without the second <s>
        embed = self.llama.get_input_embeddings()
        sequence = torch.cat(
            [
                embed(torch.tensor(before_ids)),
                self.event_tokens(slices, num_adaptors),
                embed(torch.tensor(after_ids)),
            ]
        )[None]
        num_prompt_tokens = sequence.shape[1]
        tokens, logits, past = [], [], None
        for _ in range(max_tokens):
            step = self.llama(inputs_embeds=sequence, past_key_values=past, use_cache=True)
            past = step.past_key_values
            logits.append(step.logits[0, -1])
            tokens.append(int(logits[-1].argmax()))
            if tokens[-1] == self.tokenizer.eos_token_id:
                break
            sequence = embed(torch.tensor([[tokens[-1]]]))
        return tokens, torch.stack(logits), num_prompt_tokens
