"""What our vLLM models share: a language model with a vision tower in front of it.

The language model, attention, sampling, tensor and pipeline parallelism, LoRA and quantisation are
vLLM's. A subclass embeds pictures and maps published weights; everything else is here.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from vllm.model_executor.layers.activation import get_act_fn
from vllm.model_executor.layers.linear import ColumnParallelLinear, RowParallelLinear
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.models.interfaces import SupportsLoRA, SupportsMultiModal, SupportsPP
from vllm.model_executor.models.utils import AutoWeightsLoader, WeightsMapper
from vllm.multimodal.processing import BaseDummyInputsBuilder, BaseProcessingInfo
from vllm.sequence import IntermediateTensors

from headstart.models.geometry import PictureGeometry


class VisionLanguageModel(nn.Module, SupportsMultiModal, SupportsLoRA, SupportsPP):
    """Subclasses set ``language_model`` and ``hf_to_vllm_mapper``, and embed pictures."""

    packed_modules_mapping: ClassVar = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }
    hf_to_vllm_mapper: ClassVar[WeightsMapper]
    language_model: nn.Module

    def make_empty_intermediate_tensors(
        self, batch_size: int, dtype: torch.dtype, device: torch.device
    ) -> IntermediateTensors:
        return self.language_model.make_empty_intermediate_tensors(batch_size, dtype, device)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: object,
    ) -> torch.Tensor | IntermediateTensors:
        if intermediate_tensors is not None:
            inputs_embeds = None
        return self.language_model.model(
            input_ids, positions, intermediate_tensors, inputs_embeds=inputs_embeds
        )

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        return self.language_model.compute_logits(hidden_states)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint of any known layout; an unknown name is an error."""
        return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)


class Projector(nn.Module):
    """Two linear layers with an activation between them, split over tensor-parallel ranks."""

    def __init__(
        self,
        vision_size: int,
        text_size: int,
        activation: str,
        *,
        bias: bool,
        quant_config: QuantizationConfig | None,
        prefix: str,
    ) -> None:
        super().__init__()
        self.linear_1 = ColumnParallelLinear(
            vision_size,
            text_size,
            bias=bias,
            quant_config=quant_config,
            prefix=f"{prefix}.linear_1",
        )
        self.act = get_act_fn(activation)
        self.linear_2 = RowParallelLinear(
            text_size, text_size, bias=bias, quant_config=quant_config, prefix=f"{prefix}.linear_2"
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """``[..., vision_size] -> [..., text_size]``."""
        hidden, _ = self.linear_1(features)
        hidden, _ = self.linear_2(self.act(hidden))
        return hidden


class PicturesProcessingInfo(BaseProcessingInfo):
    """Answers vLLM's questions about a model before anything is processed."""

    @abstractmethod
    def get_geometry(self) -> PictureGeometry:
        """The number of pictures and tokens of this checkpoint's clips."""

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        """Any number of clips; only the context limits them."""
        return {"video": None}


class PicturesDummyInputsBuilder(BaseDummyInputsBuilder[PicturesProcessingInfo]):
    """Makes blank clips for vLLM's memory profile."""

    placeholder: ClassVar[str]

    def get_dummy_text(self, mm_counts: Mapping[str, int]) -> str:
        return self.placeholder * mm_counts.get("video", 0)

    def get_dummy_mm_data(
        self, seq_len: int, mm_counts: Mapping[str, int], mm_options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        geometry = self.info.get_geometry()
        return {
            "video": self._get_dummy_videos(
                width=geometry.image_size,
                height=geometry.image_size,
                num_frames=geometry.num_pictures,
                num_videos=mm_counts.get("video", 0),
                overrides=mm_options.get("video"),
            )
        }
