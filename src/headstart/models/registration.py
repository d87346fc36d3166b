"""The plugin vLLM calls in every process it starts.

Installed as an entry point of the group ``vllm.general_plugins``: people who run vLLM
themselves get these models by installing the package, without any code of their own.
"""


def register() -> None:
    """Tell vLLM which classes serve which architectures. Safe to call more than once."""
    from vllm import ModelRegistry

    # By name, not by class: importing the classes would start CUDA before vLLM forks.
    ModelRegistry.register_model(
        "VideoLlavaForConditionalGeneration",
        "headstart.models.video_llava.model:VideoLlavaForConditionalGeneration",
    )
    ModelRegistry.register_model("EventChatModel", "headstart.models.eventgpt.model:EventChatModel")
    register_configs()


def register_configs() -> None:
    """Tell transformers the config it does not have: EventGPT's."""
    from transformers import AutoConfig

    from headstart.models.eventgpt.config import EventChatConfig

    AutoConfig.register(EventChatConfig.model_type, EventChatConfig, exist_ok=True)
