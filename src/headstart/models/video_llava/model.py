"""Video-LLaVA for vLLM: CLIP over frames, a projector, and the language model of its config."""

import torch
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

from headstart.models.projector import Projector
from headstart.models.video_llava.processing import (
    VideoLlavaDummyInputsBuilder,
    VideoLlavaMultiModalProcessor,
    VideoLlavaProcessingInfo,
)
from headstart.models.video_llava.view import VIDEO_PLACEHOLDER, video_geometry
from headstart.models.video_llava.weights import CANONICAL_NAMES, UNUSED_NAMES
from headstart.models.vision_language import VisionLanguageModel


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
        """The placeholder of a chat message's video in the prompt."""
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
