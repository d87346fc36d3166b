"""Videos cut into parts before vLLM processes them, each part an item of its own.

A caller gives vLLM one video. Hashing, the processor cache, placeholders, the encoder cache and
prefix-cache keys then all work by the part, and what is computed of a part serves every video that
begins with the same ones.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vllm.multimodal.parse import MultiModalDataItems, VideoProcessorItems
from vllm.multimodal.processing import BaseMultiModalProcessor, ProcessorInputs, TimingContext

from headstart.models.ownership import part_id

Timing = dict[str, Any]
"""vLLM's metadata of a video."""
VideoPart = tuple[NDArray[np.uint8], Timing | None]
"""Frames, and their timing for a model that reads it."""


class VideoPartsProcessor(BaseMultiModalProcessor[Any]):
    """Cuts videos as the model's class says, and leaves the rest to vLLM."""

    @property
    @abstractmethod
    def video_token_id(self) -> int:
        """The token in whose place a video is put."""

    def parts(
        self, frames: NDArray[np.uint8], timing: Timing | None, inputs: ProcessorInputs
    ) -> list[VideoPart]:
        """A video's parts, whose prompts together are the video's: the frames, one by one."""
        return [(frame[None], None) for frame in frames]

    def placeholders(self, num_parts: int) -> list[int]:
        """What stands in the prompt for a video of so many parts, before vLLM fills it in."""
        return [self.video_token_id] * num_parts

    def apply(self, inputs: ProcessorInputs, timing_ctx: TimingContext) -> Any:
        if "video" in inputs.mm_data_items:
            inputs = self._cut(inputs)
        return super().apply(inputs, timing_ctx)

    def _cut(self, inputs: ProcessorInputs) -> ProcessorInputs:
        videos = inputs.mm_data_items.get_items("video", VideoProcessorItems)
        uuids = (inputs.mm_uuid_items or {}).get("video") or [None] * len(videos)
        parts: list[VideoPart] = []
        part_uuids: list[str | None] = []
        num_parts: list[int] = []
        for video, uuid in zip(videos.get_all(), uuids, strict=True):
            frames, timing = video if isinstance(video, tuple) else (video, None)
            if frames is None or not len(frames):
                raise ValueError(
                    "A video without frames was given. Send the frames themselves: an id of"
                    " frames sent earlier is not enough, they are cached one by one."
                )
            cut = self.parts(np.asarray(frames), timing, inputs)
            parts += cut
            num_parts.append(len(cut))
            part_uuids += [
                None if uuid is None else part_id(uuid, number, *part)
                for number, part in enumerate(cut)
            ]
        items: list[Any] = [
            frames if timing is None else (frames, timing) for frames, timing in parts
        ]
        return replace(
            inputs,
            prompt=self._with_placeholders(inputs.prompt, num_parts),
            mm_data_items=MultiModalDataItems(
                {
                    **inputs.mm_data_items,
                    "video": VideoProcessorItems(items, [timing for _, timing in parts]),
                }
            ),
            mm_uuid_items={**(inputs.mm_uuid_items or {}), "video": part_uuids},
        )

    def _with_placeholders(self, prompt: list[int], num_parts: list[int]) -> list[int]:
        remaining = iter(num_parts)
        expanded: list[int] = []
        for token in prompt:
            is_video = token == self.video_token_id
            expanded += self.placeholders(next(remaining, 1)) if is_video else [token]
        return expanded
