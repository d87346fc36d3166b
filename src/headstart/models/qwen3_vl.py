"""vLLM's own Qwen3-VL, with a processor that cuts videos into pairs of frames."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.image_utils import SizeDict
from transformers.video_processing_utils import BaseVideoProcessor
from vllm.model_executor.models.qwen3_vl import (
    Qwen3VLDummyInputsBuilder,
    Qwen3VLForConditionalGeneration,
    Qwen3VLMultiModalProcessor,
    Qwen3VLProcessingInfo,
)
from vllm.model_executor.models.qwen3_vl_moe import (
    Qwen3VLMoeForConditionalGeneration,
    Qwen3VLMoeProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.processing import ProcessorInputs

from headstart.models.chat import PAIR
from headstart.models.chat import timing as timing_of
from headstart.models.video_parts import Timing, VideoPart, VideoPartsProcessor


class PairsProcessor(VideoPartsProcessor, Qwen3VLMultiModalProcessor):
    """Cuts videos into pairs of frames and leaves the rest to vLLM."""

    @property
    def video_token_id(self) -> int:
        token: int = self.info.get_hf_config().video_token_id
        return token

    def parts(
        self, frames: NDArray[np.uint8], timing: Timing | None, inputs: ProcessorInputs
    ) -> list[VideoPart]:
        """Pairs of frames, the last one doubled if it is alone.

        A video stays whole where its pairs would not be the same: if frames are chosen or tokens
        left out only later, by the whole video.
        """
        whole: list[VideoPart] = [(frames, timing)]
        if timing is None or timing.get("do_sample_frames"):
            return whole
        indices = list(timing["frames_indices"])
        is_pruned = self.info.ctx.get_mm_config().get_video_pruning_spec() is not None
        if is_pruned or len(indices) != len(frames) or inputs.hf_processor_mm_kwargs:
            return whole
        scaled = self._scaled(frames)
        if scaled is None:
            return whole
        if len(scaled) % PAIR:
            scaled, indices = np.concatenate([scaled, scaled[-1:]]), [*indices, indices[-1]]
        fps = timing["fps"]
        return [
            (
                scaled[start : start + PAIR],
                timing_of(indices[start : start + PAIR], fps, PAIR / fps),
            )
            for start in range(0, len(scaled), PAIR)
        ]

    def _scaled(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """The frames at a size that a pair alone keeps or gets as well; None if there is none."""
        processor: Any = self.info.get_video_processor()
        if processor.cap_pixels_per_frame or processor.temporal_patch_size != PAIR:
            return None
        height, width = frames.shape[1:3]
        whole = self._size(processor, len(frames), height, width)
        if self._size(processor, PAIR, height, width) == whole:
            return frames
        if self._size(processor, PAIR, *whole) != whole:
            return None
        pixels = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)
        size = SizeDict(height=whole[0], width=whole[1])
        scaled = BaseVideoProcessor.resize(processor, pixels, size, processor.resample)
        return scaled.permute(0, 2, 3, 1).contiguous().numpy()

    def _size(self, processor: Any, num_frames: int, height: int, width: int) -> tuple[int, int]:
        size, _ = self.info._get_vision_info(
            image_width=width,
            image_height=height,
            num_frames=num_frames,
            image_processor=processor,
            mm_kwargs={},
        )
        return size.height, size.width


@MULTIMODAL_REGISTRY.register_processor(
    PairsProcessor, info=Qwen3VLProcessingInfo, dummy_inputs=Qwen3VLDummyInputsBuilder
)
class Qwen3VlInPairs(Qwen3VLForConditionalGeneration):
    """The published architecture; only its prompts are cut otherwise."""


@MULTIMODAL_REGISTRY.register_processor(
    PairsProcessor, info=Qwen3VLMoeProcessingInfo, dummy_inputs=Qwen3VLDummyInputsBuilder
)
class Qwen3VlMoeInPairs(Qwen3VLMoeForConditionalGeneration):
    """The same of the mixture of experts."""
