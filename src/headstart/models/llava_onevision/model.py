"""vLLM's own LLaVA-OneVision, with a processor that cuts videos into frames."""

from typing import Any

import torch
from vllm.model_executor.models.llava_onevision import (
    LlavaOnevisionDummyInputsBuilder,
    LlavaOnevisionForConditionalGeneration,
    LlavaOnevisionProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY

from headstart.models.llava_onevision.processing import FramesProcessor


@MULTIMODAL_REGISTRY.register_processor(
    FramesProcessor,
    info=LlavaOnevisionProcessingInfo,
    dummy_inputs=LlavaOnevisionDummyInputsBuilder,
)
class LlavaOnevisionInFrames(LlavaOnevisionForConditionalGeneration):
    """The published architecture; a video of no frames is the newline."""

    def _process_video_pixels(self, inputs: Any) -> list[torch.Tensor]:
        videos = list(inputs["pixel_values_videos"])
        shown = [video for video in videos if len(video)]
        embedded = iter(
            self._video_pixels_to_features(self.vision_tower, torch.cat(shown)) if shown else ()
        )
        return [next(embedded) if len(video) else self.image_newline[None] for video in videos]
