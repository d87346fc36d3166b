"""What vLLM made of its arguments: the settings that decide which code computes an answer."""

from enum import Enum
from operator import attrgetter
from typing import Any

_PLACES = {
    "model_runner_v2": "use_v2_model_runner",
    "async_scheduling": "scheduler_config.async_scheduling",
    "scheduler": "scheduler_config.scheduler_cls",
    "speculative_method": "speculative_config.method",
    "num_speculative_tokens": "num_speculative_tokens",
    "compilation": "compilation_config.mode",
    "graphs": "compilation_config.cudagraph_mode",
    "largest_graph": "compilation_config.max_cudagraph_capture_size",
    "attention": "attention_config.backend",
    "device": "device_config.device_type",
    "dtype": "model_config.dtype",
    "quantization": "model_config.quantization",
    "enforce_eager": "model_config.enforce_eager",
    "max_model_len": "model_config.max_model_len",
    "kv_cache_dtype": "cache_config.cache_dtype",
    "block_size": "cache_config.block_size",
    "num_blocks": "cache_config.num_gpu_blocks",
    "prefix_caching": "cache_config.enable_prefix_caching",
    "gpu_memory_utilization": "cache_config.gpu_memory_utilization",
    "max_num_seqs": "scheduler_config.max_num_seqs",
    "max_num_batched_tokens": "scheduler_config.max_num_batched_tokens",
    "tensor_parallel_size": "parallel_config.tensor_parallel_size",
}


def chosen_settings(vllm_config: Any) -> dict[str, Any]:
    """The settings of an engine that is up, ready for JSON.

    None stands for what vLLM left open, and for what a config lacks. They are those of the calling
    process: a worker that turns graphs off for its attention kernel does not say so here.
    """
    return {name: _plain(_found(vllm_config, place)) for name, place in _PLACES.items()}


def _found(vllm_config: Any, place: str) -> Any:
    try:
        return attrgetter(place)(vllm_config)
    except AttributeError:  # no speculative config, for example
        return None


def _plain(value: Any) -> str | int | float | bool | None:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return value if value is None or isinstance(value, str | int | float) else str(value)
