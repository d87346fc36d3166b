"""vLLM's own InternVL3, with a processor that cuts videos into frames."""

from vllm.model_executor.models.interns1 import (
    InternS1DummyInputsBuilder,
    InternS1ForConditionalGeneration,
    InternS1ProcessingInfo,
)
from vllm.multimodal import MULTIMODAL_REGISTRY

from headstart.models.internvl.processing import FramesProcessor


@MULTIMODAL_REGISTRY.register_processor(
    FramesProcessor, info=InternS1ProcessingInfo, dummy_inputs=InternS1DummyInputsBuilder
)
class InternVlInFrames(InternS1ForConditionalGeneration):
    """The published architecture; only its prompts are cut otherwise."""
