"""Turns videos into vLLM's multimodal inputs, with each frame an item of its own.

A caller gives vLLM one video. This processor splits it into one multimodal item a frame before
vLLM sees it, so hashing, the processor cache, placeholders, the encoder cache and prefix-cache keys
all work by the frame. The answers stay the same: the video tower looks at each frame alone and the
language model is causal, so nothing computed for frame k depends on a later frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from transformers import BatchFeature, VideoLlavaConfig
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems, VideoProcessorItems
from vllm.multimodal.processing import (
    BaseMultiModalProcessor,
    ProcessorInputs,
    PromptReplacement,
    PromptUpdate,
    TimingContext,
)
from vllm.transformers_utils.processor import cached_image_processor_from_config

from headstart.models.geometry import PictureGeometry
from headstart.models.ownership import frame_id
from headstart.models.pictures import PicturesDummyInputsBuilder, PicturesProcessingInfo
from headstart.models.video_llava.geometry import video_geometry
from headstart.models.video_llava.prompt import VIDEO_PLACEHOLDER


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
        torchvision and would treat the video as a whole.
        """
        return cached_image_processor_from_config(self.ctx.model_config, **kwargs)

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """The tokens of an item, which is a frame."""
        return {"video": self.get_geometry().tokens_per_picture}


class VideoLlavaDummyInputsBuilder(PicturesDummyInputsBuilder):
    """Makes blank videos."""

    placeholder = VIDEO_PLACEHOLDER


class VideoLlavaMultiModalProcessor(BaseMultiModalProcessor[VideoLlavaProcessingInfo]):
    """Splits videos into frames and leaves the rest to vLLM."""

    def apply(self, inputs: ProcessorInputs, timing_ctx: TimingContext) -> Any:
        """Process a prompt after splitting its videos into frames."""
        return super().apply(self._split_into_frames(inputs), timing_ctx)

    def _split_into_frames(self, inputs: ProcessorInputs) -> ProcessorInputs:
        if "video" not in inputs.mm_data_items:
            return inputs
        videos = inputs.mm_data_items.get_items("video", VideoProcessorItems)
        uuids = (inputs.mm_uuid_items or {}).get("video") or [None] * len(videos)

        frames: list[np.ndarray | None] = []
        frame_uuids: list[str | None] = []
        frames_of_video: list[int] = []
        for video, uuid in zip(videos.get_all(), uuids, strict=True):
            if video is None or len(video) == 0:
                raise ValueError(
                    "A video without frames was given. Send the frames themselves: an id of"
                    " frames sent earlier is not enough, they are cached one by one."
                )
            frames_of_video.append(len(video))
            for number, frame in enumerate(video):
                frames.append(np.asarray(frame)[None])
                name = None if uuid is None else frame_id(uuid, number, np.asarray(frame))
                frame_uuids.append(name)

        return replace(
            inputs,
            prompt=self._one_placeholder_a_frame(inputs.prompt, frames_of_video),
            mm_data_items=MultiModalDataItems({"video": VideoProcessorItems(frames)}),
            mm_uuid_items={"video": frame_uuids},
        )

    def _one_placeholder_a_frame(self, prompt: list[int], frames_of_video: list[int]) -> list[int]:
        video_token = self.info.get_hf_config().video_token_index
        remaining = iter(frames_of_video)
        expanded: list[int] = []
        for token in prompt:
            expanded += [token] * (next(remaining, 1) if token == video_token else 1)
        return expanded

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
        tokens_per_frame = self.info.get_geometry().tokens_per_picture
        return [
            PromptReplacement(
                modality="video",
                target=[video_token],
                replacement=[video_token] * tokens_per_frame,
            )
        ]
