"""Rendered slices of a window to vLLM's multimodal inputs: one window is one item.

Slices are not items of their own, as a video's frames are: the model averages over them, so
every one of a window's tokens depends on all of its slices.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from transformers import BatchFeature, CLIPImageProcessorPil
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems, VideoProcessorItems
from vllm.multimodal.processing import (
    BaseMultiModalProcessor,
    PromptReplacement,
    PromptUpdate,
)

from headstart.models.eventgpt.config import EventChatConfig
from headstart.models.eventgpt.geometry import event_geometry, num_window_tokens
from headstart.models.eventgpt.prompt import EVENT_PLACEHOLDER, place_events, placeholder_id
from headstart.models.geometry import PictureGeometry
from headstart.models.pictures import PicturesDummyInputsBuilder, PicturesProcessingInfo


class EventGptProcessingInfo(PicturesProcessingInfo):
    """What vLLM asks about the model before it processes anything."""

    def get_hf_config(self) -> EventChatConfig:
        """The checkpoint's config."""
        return self.ctx.get_hf_config(EventChatConfig)

    def get_geometry(self) -> PictureGeometry:
        """Token counts of this checkpoint."""
        return event_geometry(self.get_hf_config())

    def get_image_processor(self) -> Any:
        """CLIP's own, at the tower's size: the published checkpoint names it by its tower only.

        The PIL one whether or not torchvision is there: the same pixels on every machine, and
        what the published model was trained with.
        """
        size = self.get_geometry().image_size
        return CLIPImageProcessorPil(
            size={"shortest_edge": size}, crop_size={"height": size, "width": size}
        )

    def get_placeholder_id(self) -> int:
        """The id that holds the events' place in the prompt."""
        return placeholder_id(self.get_tokenizer())

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """An item is a window."""
        geometry = self.get_geometry()
        return {"video": num_window_tokens(geometry, geometry.num_pictures)}


class EventGptDummyInputsBuilder(PicturesDummyInputsBuilder):
    """Blank slices."""

    placeholder = EVENT_PLACEHOLDER


class EventGptMultiModalProcessor(BaseMultiModalProcessor[EventGptProcessingInfo]):
    """Slices to pixels, and the prompt's words to the ids the model was trained on."""

    def _postprocess_prompt(self, prompt: list[int]) -> list[int]:
        """The words before and after the events, encoded apart."""
        return place_events(self.info.get_tokenizer(), prompt)

    def _call_hf_processor(
        self, hf_data: Mapping[str, object], hf_kwargs: Mapping[str, object]
    ) -> BatchFeature:
        windows: Sequence[Any] = hf_data["videos"]  # type: ignore[assignment]
        if not all(len(window) for window in windows):
            # The engine would take the prompt and die of it in the tower, with all its requests.
            raise ValueError("A window without a slice has nothing to look at: render its events")
        slices = [np.asarray(picture) for window in windows for picture in window]
        pixels = self.info.ctx.call_hf_processor(
            self.info.get_image_processor(), {"images": slices}, hf_kwargs
        )["pixel_values"]
        ends = np.cumsum([0, *(len(window) for window in windows)])
        return BatchFeature({"pixel_values_events": [pixels[a:b] for a, b in pairwise(ends)]})

    def _get_mm_fields_config(
        self, hf_inputs: BatchFeature, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        return {"pixel_values_events": MultiModalFieldConfig.batched("video")}

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, object],
        out_mm_kwargs: MultiModalKwargsItems,
    ) -> Sequence[PromptUpdate]:
        placeholder, geometry = self.info.get_placeholder_id(), self.info.get_geometry()

        def replacement(window: int) -> list[int]:
            windows = mm_items.get_items("video", VideoProcessorItems)
            return [placeholder] * num_window_tokens(geometry, windows.get_num_frames(window))

        return [PromptReplacement(modality="video", target=[placeholder], replacement=replacement)]
