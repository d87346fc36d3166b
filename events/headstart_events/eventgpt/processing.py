"""Turns rendered slices into vLLM's multimodal inputs, with each window one item.

Slices are not items of their own, as a video's frames are: the model averages over them, so that
the tokens of a window depend on all of its slices.
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

from headstart.models.geometry import PictureGeometry
from headstart.models.vision_language import PicturesDummyInputsBuilder, PicturesProcessingInfo
from headstart_events.eventgpt.config import EventChatConfig
from headstart_events.eventgpt.geometry import event_geometry, num_window_tokens
from headstart_events.eventgpt.prompt import EVENT_PLACEHOLDER, place_events, placeholder_id


class EventGptProcessingInfo(PicturesProcessingInfo):
    """Answers vLLM's questions about the model before anything is processed."""

    def get_hf_config(self) -> EventChatConfig:
        """The checkpoint's config."""
        return self.ctx.get_hf_config(EventChatConfig)

    def get_geometry(self) -> PictureGeometry:
        """The geometry of this checkpoint's windows."""
        return event_geometry(self.get_hf_config())

    def get_image_processor(self) -> Any:
        """CLIP's own preprocessor at the tower's size; the published checkpoint has none.

        It is always the one on PIL, also where torchvision is installed: it gives the same pixels
        on every machine, and the published model was trained with it.
        """
        size = self.get_geometry().image_size
        return CLIPImageProcessorPil(
            size={"shortest_edge": size}, crop_size={"height": size, "width": size}
        )

    def get_placeholder_id(self) -> int:
        """The token id of the events' placeholder in the prompt."""
        return placeholder_id(self.get_tokenizer())

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        """The tokens of an item, which is a window."""
        geometry = self.get_geometry()
        return {"video": num_window_tokens(geometry, geometry.num_pictures)}


class EventGptDummyInputsBuilder(PicturesDummyInputsBuilder):
    """Makes blank slices."""

    placeholder = EVENT_PLACEHOLDER


class EventGptMultiModalProcessor(BaseMultiModalProcessor[EventGptProcessingInfo]):
    """Turns slices into pixels, and the prompt into the ids of the model's training."""

    def _postprocess_prompt(self, prompt: list[int]) -> list[int]:
        """Encode the text before and after the events separately."""
        return place_events(self.info.get_tokenizer(), prompt)

    def _call_hf_processor(
        self, hf_data: Mapping[str, object], hf_kwargs: Mapping[str, object]
    ) -> BatchFeature:
        windows: Sequence[Any] = hf_data["videos"]  # type: ignore[assignment]
        if not all(len(window) for window in windows):
            # In the tower it would end the engine, and with it all requests.
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
