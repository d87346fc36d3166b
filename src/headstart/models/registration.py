"""The plugin that vLLM calls in every process it starts, to register our models.

It is an entry point of the group ``vllm.general_plugins``, so that users of vLLM get these models
by installing the package.
"""

from headstart.models.chat import in_parts

IN_PARTS = {
    "Qwen3VLForConditionalGeneration": "qwen3_vl:Qwen3VlInPairs",
    "Qwen3VLMoeForConditionalGeneration": "qwen3_vl:Qwen3VlMoeInPairs",
    "LlavaOnevisionForConditionalGeneration": "llava_onevision:LlavaOnevisionInFrames",
    "InternVLForConditionalGeneration": "internvl:InternVlInFrames",
}
"""vLLM's own models with our processors."""


def register() -> None:
    from vllm import ModelRegistry

    # By name, not by class: importing the classes would start CUDA before vLLM forks.
    ModelRegistry.register_model(
        "VideoLlavaForConditionalGeneration",
        "headstart.models.video_llava.model:VideoLlavaForConditionalGeneration",
    )
    for architecture, ours in IN_PARTS.items():
        ModelRegistry.register_model(in_parts(architecture), f"headstart.models.{ours}")
