"""vLLM's own Qwen3-VL, with a processor that cuts videos into pairs of frames."""

from vllm.model_executor.models.qwen3_vl import (
    Qwen3VLDummyInputsBuilder,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessingInfo,
)
from vllm.model_executor.models.qwen3_vl_moe import (
    Qwen3VLMoeForConditionalGeneration,
    Qwen3VLMoeProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY

from headstart.models.qwen3_vl.processing import PairsProcessor


@MULTIMODAL_REGISTRY.register_processor(
    PairsProcessor, info=Qwen3VLProcessingInfo, dummy_inputs=Qwen3VLDummyInputsBuilder
)
class Qwen3VlInPairs(Qwen3VLForConditionalGeneration):
    """The published architecture; only its prompts are cut otherwise."""


@MULTIMODAL_REGISTRY.register_processor(
    PairsProcessor, info=Qwen3VLMoeProcessingInfo, dummy_inputs=Qwen3VLDummyInputsBuilder
)
class Qwen3VlMoeInPairs(Qwen3VLMoeForConditionalGeneration):
    """The same of the mixture of experts."""
