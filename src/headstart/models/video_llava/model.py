"""Video-LLaVA for vLLM: CLIP over frames, a projector, and the language model of its config.

Each frame of a video is an item of its own. The answers stay the same: the tower looks at each
frame alone and the language model is causal, so nothing computed of a frame depends on a later
one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import BatchFeature, VideoLlavaConfig
from vllm.config import VllmConfig
from vllm.model_executor.models.clip import CLIPVisionModel
from vllm.model_executor.models.interfaces import MultiModalEmbeddings
from vllm.model_executor.models.module_mapping import MultiModelKeys
from vllm.model_executor.models.utils import (
    WeightsMapper,
    get_layer_index,
    init_vllm_registered_model,
    maybe_prefix,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems
from vllm.multimodal.parse import MultiModalDataItems
from vllm.multimodal.processing import PromptReplacement, PromptUpdate
from vllm.transformers_utils.processor import cached_image_processor_from_config

from headstart.models.geometry import PictureGeometry
from headstart.models.video_llava.view import (
    CANONICAL_NAMES,
    UNUSED_NAMES,
    VIDEO_PLACEHOLDER,
    video_geometry,
)
from headstart.models.video_parts import VideoPartsProcessor
from headstart.models.vision_language import (
    PicturesDummyInputsBuilder,
    PicturesProcessingInfo,
    Projector,
    VisionLanguageModel,
)


class VideoLlavaProcessingInfo(PicturesProcessingInfo):
    def get_hf_config(self) -> VideoLlavaConfig:
        return self.ctx.get_hf_config(VideoLlavaConfig)

    def get_geometry(self) -> PictureGeometry:
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
        return {"video": self.get_geometry().tokens_per_picture}


class VideoLlavaDummyInputsBuilder(PicturesDummyInputsBuilder):
    placeholder = VIDEO_PLACEHOLDER


class VideoLlavaMultiModalProcessor(VideoPartsProcessor):
    """Cuts videos into frames and leaves the rest to vLLM."""

    @property
    def video_token_id(self) -> int:
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


@MULTIMODAL_REGISTRY.register_processor(
    VideoLlavaMultiModalProcessor,
    info=VideoLlavaProcessingInfo,
    dummy_inputs=VideoLlavaDummyInputsBuilder,
)
class VideoLlavaForConditionalGeneration(VisionLanguageModel):
    """The published architecture, under the name transformers gives it."""

    hf_to_vllm_mapper = WeightsMapper(orig_to_new_regex={**CANONICAL_NAMES, UNUSED_NAMES: None})

    @classmethod
    def get_placeholder_str(cls, modality: str, i: int) -> str | None:
        if modality.startswith("video"):
            return VIDEO_PLACEHOLDER
        raise ValueError(
            f"headstart serves Video-LLaVA with video only, and was given {modality}."
            " Send a still image as a video of equal frames."
        )

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        quant_config = vllm_config.quant_config
        self.config = config
        video_geometry(config)  # raises if the config is wrong
        self.configure_mm_token_handling(
            vocab_size=config.text_config.vocab_size,
            mm_token_ids=[config.image_token_index, config.video_token_index],
        )

        with self._mark_tower_model(vllm_config, "video"):
            self.video_tower = CLIPVisionModel(
                config.vision_config,
                quant_config=quant_config,
                num_hidden_layers_override=get_layer_index(
                    config.vision_feature_layer, config.vision_config.num_hidden_layers
                ),
                require_post_norm=False,
                prefix=maybe_prefix(prefix, "video_tower"),
            )
            self.multi_modal_projector = Projector(
                config.vision_config.hidden_size,
                config.text_config.hidden_size,
                config.projector_hidden_act,
                bias=config.multimodal_projector_bias,
                quant_config=quant_config,
                prefix=maybe_prefix(prefix, "multi_modal_projector"),
            )
        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config,
                hf_config=config.text_config,
                prefix=maybe_prefix(prefix, "language_model"),
            )

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """``[frames, 3, size, size]`` pixels to one ``[tokens, hidden]`` embedding a frame."""
        pixels = kwargs.get("pixel_values_videos")
        if pixels is None:
            return []
        assert isinstance(pixels, torch.Tensor)
        return self.multi_modal_projector(self.video_tower(pixels))

    def get_mm_mapping(self) -> MultiModelKeys:
        """Which modules are language model, connector and tower, for LoRA."""
        return MultiModelKeys.from_string_field(
            language_model="language_model",
            connector="multi_modal_projector",
            tower_model="video_tower",
        )
