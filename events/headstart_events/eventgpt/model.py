"""EventGPT for vLLM: CLIP over rendered slices, projector, adaptor, pooling, Llama.

Each window is one item. Slices are not items of their own, as a video's frames are: the model
averages over them, so that the tokens of a window depend on all of its slices.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from transformers import BatchFeature, CLIPImageProcessorPil
from vllm.config import VllmConfig
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.models.clip import CLIPVisionModel
from vllm.model_executor.models.interfaces import MultiModalEmbeddings
from vllm.model_executor.models.module_mapping import MultiModelKeys
from vllm.model_executor.models.utils import (
    WeightsMapper,
    init_vllm_registered_model,
    maybe_prefix,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems, VideoProcessorItems
from vllm.multimodal.processing import (
    BaseMultiModalProcessor,
    PromptReplacement,
    PromptUpdate,
)

from headstart.models.geometry import PictureGeometry
from headstart.models.vision_language import (
    PicturesDummyInputsBuilder,
    PicturesProcessingInfo,
    Projector,
    VisionLanguageModel,
)
from headstart_events.eventgpt.config import EventChatConfig
from headstart_events.eventgpt.view import (
    CANONICAL_NAMES,
    EVENT_PLACEHOLDER,
    event_geometry,
    num_window_tokens,
    place_events,
    placeholder_id,
)


class EventGptProcessingInfo(PicturesProcessingInfo):
    def get_hf_config(self) -> EventChatConfig:
        return self.ctx.get_hf_config(EventChatConfig)

    def get_geometry(self) -> PictureGeometry:
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
        return placeholder_id(self.get_tokenizer())

    def get_mm_max_tokens_per_item(
        self, seq_len: int, mm_counts: Mapping[str, int]
    ) -> Mapping[str, int]:
        geometry = self.get_geometry()
        return {"video": num_window_tokens(geometry, geometry.num_pictures)}


class EventGptDummyInputsBuilder(PicturesDummyInputsBuilder):
    """Makes blank slices."""

    placeholder = EVENT_PLACEHOLDER


class EventGptMultiModalProcessor(BaseMultiModalProcessor[EventGptProcessingInfo]):
    """Turns slices into pixels, and the prompt into the ids of the model's training."""

    def _postprocess_prompt(self, prompt: list[int]) -> list[int]:
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


def pool(features: torch.Tensor) -> torch.Tensor:
    """``[slices, places, size]`` to one token a slice, then one token a place."""
    return torch.cat([features.mean(dim=1), features.mean(dim=0)])


@MULTIMODAL_REGISTRY.register_processor(
    EventGptMultiModalProcessor,
    info=EventGptProcessingInfo,
    dummy_inputs=EventGptDummyInputsBuilder,
)
class EventChatModel(VisionLanguageModel):
    """The published architecture, under the name its config gives it."""

    hf_to_vllm_mapper = WeightsMapper(orig_to_new_regex=CANONICAL_NAMES)

    @classmethod
    def get_placeholder_str(cls, modality: str, i: int) -> str | None:
        if modality.startswith("video"):
            return EVENT_PLACEHOLDER
        raise ValueError(
            f"EventGPT takes the rendered slices of a window as a video, and was given {modality}."
        )

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        quant_config = vllm_config.quant_config
        self.config = config
        event_geometry(config)  # raises if the config is wrong

        with self._mark_tower_model(vllm_config, "video"):
            self.visual_tower = CLIPVisionModel(
                config.vision_config,
                quant_config=quant_config,
                require_post_norm=False,
                prefix=maybe_prefix(prefix, "visual_tower"),
            )
            self.visual_projector = Projector(
                config.vision_config.hidden_size,
                config.hidden_size,
                "gelu",
                bias=True,
                quant_config=quant_config,
                prefix=maybe_prefix(prefix, "visual_projector"),
            )
            self.feature_adaptor = ReplicatedLinear(
                config.hidden_size,
                config.hidden_size,
                quant_config=quant_config,
                prefix=maybe_prefix(prefix, "feature_adaptor"),
            )
        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config,
                hf_config=config,
                prefix=maybe_prefix(prefix, "language_model"),
                architectures=["LlamaForCausalLM"],
            )

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """Windows of ``[slices, 3, size, size]`` pixels to one ``[tokens, hidden]`` each."""
        windows = kwargs.get("pixel_values_events")
        if windows is None:
            return []
        assert isinstance(windows, torch.Tensor | list)
        lengths = [len(window) for window in windows]
        features = self.visual_projector(self.visual_tower(torch.cat(list(windows))))
        features, _ = self.feature_adaptor(features)
        return [pool(window) for window in features.split(lengths)]

    def get_mm_mapping(self) -> MultiModelKeys:
        return MultiModelKeys.from_string_field(
            language_model="language_model",
            connector=["visual_projector", "feature_adaptor"],
            tower_model="visual_tower",
        )
