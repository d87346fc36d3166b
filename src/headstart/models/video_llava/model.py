"""Video-LLaVA for vLLM: CLIP over frames, a projector, and whatever language model it has.

The language model, attention, sampling, tensor and pipeline parallelism, LoRA and
quantisation are vLLM's; this file only says how frames become embeddings and where each
published weight goes.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.activation import get_act_fn
from vllm.model_executor.layers.linear import ColumnParallelLinear, RowParallelLinear
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.models.clip import CLIPVisionModel
from vllm.model_executor.models.interfaces import (
    MultiModalEmbeddings,
    SupportsLoRA,
    SupportsMultiModal,
    SupportsPP,
)
from vllm.model_executor.models.module_mapping import MultiModelKeys
from vllm.model_executor.models.utils import (
    AutoWeightsLoader,
    WeightsMapper,
    get_layer_index,
    init_vllm_registered_model,
    maybe_prefix,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.sequence import IntermediateTensors

from headstart.models.video_llava.geometry import VideoGeometry
from headstart.models.video_llava.processing import (
    VideoLlavaDummyInputsBuilder,
    VideoLlavaMultiModalProcessor,
    VideoLlavaProcessingInfo,
)
from headstart.models.video_llava.prompt import VIDEO_PLACEHOLDER
from headstart.models.video_llava.weights import CANONICAL_NAMES, UNUSED_NAMES


class VideoLlavaProjector(nn.Module):
    """Two linear layers from the tower's width to the language model's."""

    def __init__(self, config: Any, quant_config: QuantizationConfig | None, prefix: str) -> None:
        super().__init__()
        vision_size, text_size = config.vision_config.hidden_size, config.text_config.hidden_size
        bias = config.multimodal_projector_bias
        self.linear_1 = ColumnParallelLinear(
            vision_size,
            text_size,
            bias=bias,
            quant_config=quant_config,
            prefix=f"{prefix}.linear_1",
        )
        self.act = get_act_fn(config.projector_hidden_act)
        self.linear_2 = RowParallelLinear(
            text_size, text_size, bias=bias, quant_config=quant_config, prefix=f"{prefix}.linear_2"
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """``[frames, tokens, vision] -> [frames, tokens, text]``."""
        hidden, _ = self.linear_1(features)
        hidden, _ = self.linear_2(self.act(hidden))
        return hidden


@MULTIMODAL_REGISTRY.register_processor(
    VideoLlavaMultiModalProcessor,
    info=VideoLlavaProcessingInfo,
    dummy_inputs=VideoLlavaDummyInputsBuilder,
)
class VideoLlavaForConditionalGeneration(nn.Module, SupportsMultiModal, SupportsLoRA, SupportsPP):
    """The published architecture, under the name transformers gives it."""

    packed_modules_mapping: ClassVar = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }
    hf_to_vllm_mapper = WeightsMapper(orig_to_new_regex={**CANONICAL_NAMES, UNUSED_NAMES: None})

    @classmethod
    def get_placeholder_str(cls, modality: str, i: int) -> str | None:
        """What a chat message's video becomes in the text of the prompt."""
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
        self.geometry = VideoGeometry.from_config(config)
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
            self.multi_modal_projector = VideoLlavaProjector(
                config, quant_config, prefix=maybe_prefix(prefix, "multi_modal_projector")
            )
        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config,
                hf_config=config.text_config,
                prefix=maybe_prefix(prefix, "language_model"),
            )
        self.make_empty_intermediate_tensors = self.language_model.make_empty_intermediate_tensors

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """``[frames, 3, size, size]`` pixels to one ``[tokens, hidden]`` embedding a frame."""
        pixels = kwargs.get("pixel_values_videos")
        if pixels is None:
            return []
        assert isinstance(pixels, torch.Tensor)
        return self.multi_modal_projector(self.video_tower(pixels))

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: object,
    ) -> torch.Tensor | IntermediateTensors:
        """Run the language model over embeddings that already hold the frames."""
        if intermediate_tensors is not None:
            inputs_embeds = None
        return self.language_model.model(
            input_ids, positions, intermediate_tensors, inputs_embeds=inputs_embeds
        )

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Scores over the vocabulary."""
        return self.language_model.compute_logits(hidden_states)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint of any known layout; an unknown name is an error."""
        return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)

    def get_mm_mapping(self) -> MultiModelKeys:
        """Which modules are language model, connector and tower, for LoRA."""
        return MultiModelKeys.from_string_field(
            language_model="language_model",
            connector="multi_modal_projector",
            tower_model="video_tower",
        )
