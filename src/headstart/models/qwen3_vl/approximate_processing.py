"""Turns a part of Qwen3-VL's videos into vLLM's multimodal inputs.

vLLM can prune this model's videos itself, by how much embeddings resemble each other. It knows how
many are kept only after the tower, so it prunes whole videos, and mends positions afterwards. Our
plan is known before: each pair of frames stays an item, and its prompt has as many tokens as are
kept of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import BatchFeature
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems, VideoProcessorItems
from vllm.multimodal.processing import (
    ProcessorInputs,
    PromptReplacement,
    PromptUpdate,
    PromptUpdateDetails,
)

from headstart.models.kept_patches import KeptPatches, plan_of, without_plan
from headstart.models.qwen3_vl.processing import PairsProcessor
from headstart.models.qwen3_vl.view import PAIR
from headstart.models.video_parts import Timing, VideoPart, timings_of

KEPT_TOKENS = "kept_tokens"


class PatchesProcessor(PairsProcessor):
    """Cuts videos into pairs of frames, and leaves out what a plan leaves out of them."""

    def parts(
        self, frames: NDArray[np.uint8], timing: Timing | None, inputs: ProcessorInputs
    ) -> list[VideoPart]:
        """Pairs of frames; with a plan those that it shows, each with what is kept of it."""
        plan, pairs = plan_of(timing), super().parts(frames, timing, inputs)
        if plan is None:
            return pairs
        if PAIR * len(pairs) < len(frames):
            raise ValueError(
                "This video stays whole, and so nothing can be left out of it: ask without"
                " approximate, or without cap_pixels_per_frame, processor arguments and"
                " video_pruning_rate."
            )
        return [
            (pair, {**without_plan(times or {}), **plan[number].metadata()})
            for number, (pair, times) in enumerate(pairs)
            if number in plan
        ]

    def _apply_hf_processor_main(
        self, mm_items: MultiModalDataItems, hf_kwargs: Mapping[str, object]
    ) -> BatchFeature:
        """As vLLM does, with what is kept of each video beside its pixels."""
        videos = mm_items.get("video")
        if not isinstance(videos, VideoProcessorItems):  # none, or embeddings of the caller's
            return super()._apply_hf_processor_main(mm_items, hf_kwargs)
        timings = timings_of(videos)
        known = [without_plan(timing or {}) for timing in timings]
        frames = [video[0] for video in videos.get_all()]
        items = VideoProcessorItems(list(zip(frames, known, strict=True)), known)
        processed = super()._apply_hf_processor_main(
            MultiModalDataItems({**mm_items, "video": items}), hf_kwargs
        )
        side = self.info.get_hf_config().vision_config.spatial_merge_size
        processed[KEPT_TOKENS] = [
            torch.from_numpy(_tokens(KeptPatches.of(timing), grid, side))
            for timing, grid in zip(timings, processed["video_grid_thw"], strict=True)
        ]
        return processed

    def _get_mm_fields_config(
        self, hf_inputs: BatchFeature, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        fields = super()._get_mm_fields_config(hf_inputs, hf_processor_mm_kwargs)
        # On the CPU, where positions are computed too.
        kept = MultiModalFieldConfig.batched("video", keep_on_cpu=True)
        return {**fields, KEPT_TOKENS: kept}

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, Any],
        out_mm_kwargs: MultiModalKwargsItems,
    ) -> Sequence[PromptUpdate]:
        updates = super()._get_prompt_updates(mm_items, hf_processor_mm_kwargs, out_mm_kwargs)

        def in_part(whole: Any) -> Any:
            def shown(number: int) -> "PromptUpdateDetails[Any]":
                kept: Any = out_mm_kwargs["video"][number][KEPT_TOKENS].data
                tokens, patches = whole(number).full, iter(kept.tolist())
                left = [t for t in tokens if t != self.video_token_id or next(patches)]
                return PromptUpdateDetails.select_token_id(left, self.video_token_id)

            return shown

        return [
            replace(update, replacement=in_part(update.replacement))
            if isinstance(update, PromptReplacement) and update.modality == "video"
            else update
            for update in updates
        ]


def _tokens(kept: KeptPatches | None, grid: Any, merged: int) -> NDArray[np.bool_]:
    """Which tokens of a video are in the prompt, given its grid of patches before merging."""
    times, height, width = (int(side) for side in grid)
    rows, columns = height // merged, width // merged
    if kept is None:
        return np.ones(times * rows * columns, dtype=np.bool_)
    return kept.on(rows, columns).reshape(-1)
