"""vLLM's own Qwen3-VL, shown a part of the patches of a video.

The tower looks at whole pairs of frames, and what is kept of its output goes on. Positions are
those that vLLM gives to whole pairs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from vllm.model_executor.models.qwen3_vl import (
    Qwen3VLDummyInputsBuilder,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessingInfo,
)
from vllm.model_executor.models.qwen3_vl_moe import (
    Qwen3VLMoeForConditionalGeneration,
    Qwen3VLMoeProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange

from headstart.models.qwen3_vl.approximate_processing import KEPT_TOKENS, PatchesProcessor


class _InPart(Qwen3VLForConditionalGeneration):
    """What both sizes of the model share."""

    def embed_multimodal(self, **kwargs: Any) -> Any:
        """As vLLM does, then only what is kept of each video."""
        embedded = super().embed_multimodal(**kwargs)
        if KEPT_TOKENS not in kwargs or embedded is None:
            return embedded
        pairs = zip(embedded, kwargs[KEPT_TOKENS], strict=True)
        return tuple(video[kept.to(video.device)] for video, kept in pairs)

    def get_encoder_cudagraph_config(self) -> Any:
        """None for any modality: vLLM's graphs of the tower would pass over `embed_multimodal`."""
        return replace(super().get_encoder_cudagraph_config(), modalities=[])

    def get_mrope_input_positions(
        self, input_tokens: list[int], mm_features: list[MultiModalFeatureSpec]
    ) -> tuple[torch.Tensor, int]:
        """The positions that vLLM gives to the whole prompt, without those of what is left out."""
        whole, features, kept = _whole(input_tokens, mm_features, self.config.video_token_id)
        positions, _ = super().get_mrope_input_positions(whole, features)
        positions = positions[:, torch.from_numpy(kept)]
        return positions, int(positions.max()) + 1 - len(input_tokens)


def _whole(
    tokens: list[int], features: list[MultiModalFeatureSpec], video_token: int
) -> tuple[list[int], list[MultiModalFeatureSpec], Any]:
    """The prompt before anything was left out, its features, and which of its tokens are kept."""
    whole: list[int] = []
    kept: list[bool] = []
    moved, done = [], 0
    for feature in sorted(features, key=lambda feature: feature.mm_position.offset):
        place = feature.mm_position
        stop = place.offset + place.length
        whole += tokens[done : place.offset]
        kept += [True] * (place.offset - done)
        offset, shown = len(whole), tokens[place.offset : stop]
        patches = _patches(feature.data)
        if patches is None or all(patches):
            whole += shown
            kept += [True] * len(shown)
        else:
            first = shown.index(video_token)
            after = shown[first + sum(patches) :]
            whole += [*shown[:first], *[video_token] * len(patches), *after]
            kept += [*[True] * first, *patches, *[True] * len(after)]
        moved.append(replace(feature, mm_position=PlaceholderRange(offset, len(whole) - offset)))
        done = stop
    whole += tokens[done:]
    kept += [True] * (len(tokens) - done)
    return whole, moved, np.array(kept, dtype=np.bool_)


def _patches(data: Any) -> list[bool] | None:
    """Which of a video's tokens are kept; None for a picture."""
    assert isinstance(data, Mapping)
    found: list[bool] | None = data[KEPT_TOKENS].data.tolist() if KEPT_TOKENS in data else None
    return found


@MULTIMODAL_REGISTRY.register_processor(
    PatchesProcessor, info=Qwen3VLProcessingInfo, dummy_inputs=Qwen3VLDummyInputsBuilder
)
class Qwen3VlInPart(_InPart):
    """The published architecture."""


@MULTIMODAL_REGISTRY.register_processor(
    PatchesProcessor, info=Qwen3VLMoeProcessingInfo, dummy_inputs=Qwen3VLDummyInputsBuilder
)
class Qwen3VlMoeInPart(_InPart, Qwen3VLMoeForConditionalGeneration):
    """The same of the mixture of experts."""
