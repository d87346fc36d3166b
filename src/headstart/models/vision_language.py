"""The base class of our vLLM models: a language model with a vision tower in front of it.

The language model, attention, sampling, tensor and pipeline parallelism, LoRA and quantisation are
vLLM's. A subclass embeds pictures and maps published weights; everything else is here.
"""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn
from vllm.model_executor.models.interfaces import SupportsLoRA, SupportsMultiModal, SupportsPP
from vllm.model_executor.models.utils import AutoWeightsLoader, WeightsMapper
from vllm.sequence import IntermediateTensors


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
        """Empty tensors of what one pipeline stage passes to the next."""
        return self.language_model.make_empty_intermediate_tensors(batch_size, dtype, device)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: object,
    ) -> torch.Tensor | IntermediateTensors:
        """Run the language model over embeddings that include the pictures'."""
        if intermediate_tensors is not None:
            inputs_embeds = None
        return self.language_model.model(
            input_ids, positions, intermediate_tensors, inputs_embeds=inputs_embeds
        )

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """The logits over the vocabulary."""
        return self.language_model.compute_logits(hidden_states)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint of any known layout; an unknown name is an error."""
        return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)
