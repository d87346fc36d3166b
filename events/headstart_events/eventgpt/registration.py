"""The plugin that vLLM calls in every process it starts, to register EventGPT.

It is an entry point of the group ``vllm.general_plugins``, as headstart's own is.
"""


def register() -> None:
    """Register the model with vLLM, and its config with transformers, which lacks it.

    Safe to call more than once.
    """
    from transformers import AutoConfig
    from vllm import ModelRegistry

    from headstart_events.eventgpt.config import EventChatConfig

    # By name, not by class: importing the classes would start CUDA before vLLM forks.
    ModelRegistry.register_model("EventChatModel", "headstart_events.eventgpt.model:EventChatModel")
    AutoConfig.register(EventChatConfig.model_type, EventChatConfig, exist_ok=True)
