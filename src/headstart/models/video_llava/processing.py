"""Turns videos into vLLM's multimodal inputs, with each frame an item of its own.

The answers stay the same: the video tower looks at each frame alone and the language model is
causal, so nothing computed for frame k depends on a later frame.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import BatchFeature, VideoLlavaConfig
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems
from vllm.multimodal.processing import PromptReplacement, PromptUpdate
from vllm.transformers_utils.processor import cached_image_processor_from_config

from headstart.models.geometry import PictureGeometry
from headstart.models.pictures import PicturesDummyInputsBuilder, PicturesProcessingInfo
from headstart.models.video_llava.view import VIDEO_PLACEHOLDER, video_geometry
from headstart.models.video_parts import VideoPartsProcessor


class VideoLlavaProcessingInfo(PicturesProcessingInfo):
    """Answers vLLM's questions about the model before anything is processed."""

    def get_hf_config(self) -> VideoLlavaConfig:
        """The checkpoint's config."""
        return self.ctx.get_hf_config(VideoLlavaConfig)

    def get_geometry(self) -> PictureGeometry:
        """The geometry of this checkpoint's clips."""
        return video_geometry(self.get_hf_config())

    def get_image_processor(self, **kwargs: object) -> Any:
        """The checkpoint's frame preprocessor.

        Not its ``VideoLlavaProcessor``: that one also loads a video processor, which needs
        torchvision and would treat the video as a whole. Of this one transformers has Pillow's
        form only; unless that is asked for, it says that torchvision is not available.
        """
        return cached_image_processor_from_config(self.ctx.model_config, backend="pil", **kwargs)

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """The tokens of an item, which is a frame."""
        return {"video": self.get_geometry().tokens_per_picture}


class VideoLlavaDummyInputsBuilder(PicturesDummyInputsBuilder):
    """Makes blank videos."""

    placeholder = VIDEO_PLACEHOLDER


class VideoLlavaMultiModalProcessor(VideoPartsProcessor):
    """Cuts videos into frames and leaves the rest to vLLM."""

    @property
    def video_token_id(self) -> int:
        """Of the checkpoint."""
        token: int = self.info.get_hf_config().video_token_index
        return token

    def _call_hf_processor(
        self, hf_data: Mapping[str, object], hf_kwargs: Mapping[str, object]
    ) -> BatchFeature:
        frames = [video[0] for video in hf_data["videos"]]  # type: ignore[attr-defined]
        processed = self.info.ctx.call_hf_processor(
            self.info.get_image_processor(**hf_kwargs), {"images": frames}, hf_kwargs
        )
        # "pixel_values_images" or "pixel_values", as the checkpoint's preprocessor names it.
        (pixels,) = processed.values()
        return BatchFeature({"pixel_values_videos": pixels})

    def _get_mm_fields_config(
        self, hf_inputs: BatchFeature, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        return {"pixel_values_videos": MultiModalFieldConfig.batched("video")}

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, object],
        out_mm_kwargs: MultiModalKwargsItems,
    ) -> Sequence[PromptUpdate]:
        video_token = self.info.get_hf_config().video_token_index

        def frame(number: int) -> list[int]:
            # Called for frames that are not in vLLM's cache only.
            return [video_token] * self.info.get_geometry().tokens_per_picture

        return [PromptReplacement(modality="video", target=[video_token], replacement=frame)]
