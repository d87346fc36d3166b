"""vLLM's own LLaVA-OneVision, with a processor that cuts videos into frames."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import BatchFeature
from vllm.model_executor.models.llava_onevision import (
    LlavaOnevisionDummyInputsBuilder,
    LlavaOnevisionForConditionalGeneration,
    LlavaOnevisionMultiModalProcessor,
    LlavaOnevisionProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems, VideoProcessorItems
from vllm.multimodal.processing import ProcessorInputs, PromptReplacement, PromptUpdate

from headstart.models.video_parts import Timing, VideoPart, VideoPartsProcessor


class FramesProcessor(VideoPartsProcessor, LlavaOnevisionMultiModalProcessor):
    """Cuts videos into frames and the newline, and leaves the rest to vLLM."""

    @property
    def video_token_id(self) -> int:
        token: int = self.info.get_hf_config().video_token_index
        return token

    def parts(
        self, frames: NDArray[np.uint8], timing: Timing | None, inputs: ProcessorInputs
    ) -> list[VideoPart]:
        newline = np.zeros((0, 1, 1, 3), np.uint8)
        return [*super().parts(frames, timing, inputs), (newline, None)]

    def _apply_hf_processor_main(
        self, mm_items: MultiModalDataItems, hf_kwargs: Mapping[str, object]
    ) -> BatchFeature:
        if "video" not in mm_items:
            return super()._apply_hf_processor_main(mm_items, hf_kwargs)
        videos = mm_items.get_items("video", VideoProcessorItems).get_all()
        shown = [video for video in videos if len(video)]
        items = {name: given for name, given in mm_items.items() if name != "video"}
        if shown:
            items["video"] = VideoProcessorItems(shown)
        processed = super()._apply_hf_processor_main(MultiModalDataItems(items), hf_kwargs)
        pixels = iter(processed.get("pixel_values_videos", ()))
        side = self.info.get_hf_config().vision_config.image_size
        nothing = torch.zeros(0, 3, side, side)
        processed["pixel_values_videos"] = [
            next(pixels) if len(video) else nothing for video in videos
        ]
        return processed

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, object],
        out_mm_kwargs: MultiModalKwargsItems,
    ) -> Sequence[PromptUpdate]:
        *of_pictures, _ = super()._get_prompt_updates(
            mm_items, hf_processor_mm_kwargs, out_mm_kwargs
        )

        def tokens(number: int) -> list[int]:
            videos = mm_items.get_items("video", VideoProcessorItems)
            if not videos.get_num_frames(number):
                return [self.video_token_id]
            size = videos.get_frame_size(number)
            return [self.video_token_id] * self.info._get_num_frame_tokens(
                image_width=size.width, image_height=size.height
            )

        return [
            *of_pictures,
            PromptReplacement(modality="video", target=[self.video_token_id], replacement=tokens),
        ]


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
