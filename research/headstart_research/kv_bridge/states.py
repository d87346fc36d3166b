"""A target's keys and values of clips, as transformers computes them.

The keys are taken before rotary positions, where vLLM's engine does not show them.
"""

from pathlib import Path
from typing import Any

import torch

from headstart.errors import TrainingError
from headstart.media.clip import Clip
from headstart.models.video_llava.view import VideoLlavaView, video_geometry, video_prompt
from headstart.models.view import view_of
from headstart_research.kv_bridge.bridge import Rows
from headstart_research.kv_bridge.config import KvConfig


class TargetStates:
    """A Video-LLaVA in this process. Not thread-safe."""

    def __init__(self, name: str | Path) -> None:
        from transformers import (
            AutoConfig,
            AutoImageProcessor,
            AutoTokenizer,
            VideoLlavaForConditionalGeneration,
        )

        config = AutoConfig.from_pretrained(name)
        view = view_of(config)
        if not isinstance(view, VideoLlavaView):
            raise TrainingError(f"{name} is no Video-LLaVA: a KV bridge is for one")
        self.name = str(name)
        self.view = view
        self._config = config
        self._geometry = video_geometry(config)
        self._processor: Any = AutoImageProcessor.from_pretrained(name, backend="pil")
        loaded = VideoLlavaForConditionalGeneration.from_pretrained(name, dtype=torch.float32)
        self._model: Any = loaded.eval().model
        tokenizer: Any = AutoTokenizer.from_pretrained(name)
        ids = tokenizer(video_prompt("").partition("\n")[0])["input_ids"]
        self._head_ids = tuple(ids[: ids.index(config.video_token_index)])
        self._taken: dict[tuple[int, int], torch.Tensor] = {}
        for number, layer in enumerate(self._model.language_model.layers):
            for kind, projection in enumerate((layer.self_attn.k_proj, layer.self_attn.v_proj)):
                projection.register_forward_hook(self._taker(number, kind))

    def _taker(self, number: int, kind: int) -> Any:
        def take(module: Any, inputs: Any, output: torch.Tensor) -> None:
            self._taken[number, kind] = output[0]

        return take

    def kv_config(self, feature_size: int) -> KvConfig:
        """The sizes of a KV bridge for it, by its config."""
        text = self._config.text_config
        size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        return KvConfig(
            target=self.name,
            head_ids=self._head_ids,
            video_token=self._config.video_token_index,
            num_frames=self._geometry.num_pictures,
            tokens_per_frame=self._geometry.tokens_per_picture,
            num_layers=text.num_hidden_layers,
            num_kv_heads=text.num_key_value_heads,
            head_size=size,
            feature_size=feature_size,
        )

    def rows(self, clip: Clip) -> Rows:
        """Of each token of the prompt up to the question, keys and values of all layers."""
        frames = self.view.pictures(clip)
        # "pixel_values_images" or "pixel_values", as the checkpoint's preprocessor names it.
        (pixels,) = self._processor(images=list(frames), return_tensors="pt").values()
        num_clip_tokens = self._geometry.num_pictures * self._geometry.tokens_per_picture
        ids = [*self._head_ids, *[self._config.video_token_index] * num_clip_tokens]
        with torch.inference_mode():
            self._model(
                input_ids=torch.tensor([ids]),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                pixel_values_videos=pixels[None],
                use_cache=False,
            )
        layers = range(self._config.text_config.num_hidden_layers)
        states = [torch.stack([self._taken[number, kind] for kind in (0, 1)]) for number in layers]
        rows: Rows = torch.stack(states).permute(2, 0, 1, 3).flatten(1).numpy()
        return rows
