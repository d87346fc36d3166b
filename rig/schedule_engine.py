"""Schedulers without an engine: configured, and their caches sized, by vLLM's own functions."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.core import kv_cache_utils
from vllm.v1.core.encoder_cache_manager import EncoderCacheManager, compute_mm_encoder_budget
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheSpec,
    SlidingWindowSpec,
)
from vllm.v1.structured_output import StructuredOutputManager

from headstart.engine.options import SchedulerOptions, Sources
from headstart.engine.scheduler import HeadstartScheduler
from headstart.engine.startup import drafting_arguments
from rig.schedule_target import END, FIRST_WORD, LETTERS, VOCABULARY

BLOCK_SIZE = 16
_LAYER = {"block_size": BLOCK_SIZE, "num_kv_heads": 1, "head_size": 1, "dtype": torch.float32}
LEAST = -1
"""Of blocks: as few as vLLM starts with."""


def full_attention() -> KVCacheSpec:
    """A layer that sees everything before it."""
    return FullAttentionSpec(**_LAYER)


def sliding_window(num_tokens: int) -> KVCacheSpec:
    """A layer that sees so many tokens, the present one included."""
    return SlidingWindowSpec(sliding_window=num_tokens, **_LAYER)


@cache
def model_directory() -> str:
    """A Llama's config and words, which is all that a scheduler reads of a model."""
    directory = Path(mkdtemp(prefix="schedules-"))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "max_position_embeddings": 4096,
        "bos_token_id": 1,
        "eos_token_id": END,
        "torch_dtype": "float32",
    }
    (directory / "config.json").write_text(json.dumps(config))
    words = {"<unk>": 0, "<s>": 1, "</s>": END}
    words |= {letter: FIRST_WORD + place for place, letter in enumerate(LETTERS)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": ""},
            "behavior": "Isolated",
            "invert": False,
        },
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    named |= {"bos_token": "<s>", "eos_token": "</s>"}
    (directory / "tokenizer_config.json").write_text(json.dumps(named))
    return str(directory)


def scheduler(
    max_draft_tokens: int,
    num_blocks: int = 400,
    sources: Sources = Sources(abstain=False),  # noqa: B008 - frozen
    layers: Mapping[str, KVCacheSpec] | None = None,
    num_spare_blocks: int = 0,
    longest_item: int = 0,
    channel: str | None = None,
    **arguments: Any,
) -> Scheduler:
    """Ours, or vLLM's own with ``max_draft_tokens`` 0.

    Of a model that sees, items of its input take up to ``longest_item`` tokens; its encoder
    computes and keeps as few of them as vLLM allows for.
    """
    options = SchedulerOptions(sources, channel)
    drafting = drafting_arguments(max_draft_tokens, options, {}) if max_draft_tokens else {}
    given = {
        "max_model_len": 160,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 256,
        **drafting,
        **arguments,
    }
    config = EngineArgs(
        model_directory(),
        dtype="float32",
        block_size=BLOCK_SIZE,
        kv_cache_memory_bytes=1 << 26,
        **given,
    ).create_engine_config()
    config.cache_config.kv_cache_layout = "BLHNC"  # which attention in the workers would decide
    layout = cache_layout(config, layers or {"full": full_attention()}, num_blocks)
    num_blocks = layout.num_blocks + num_spare_blocks
    layout.num_blocks = config.cache_config.num_gpu_blocks = num_blocks
    kind = HeadstartScheduler if max_draft_tokens else Scheduler
    manager = StructuredOutputManager(config)
    manager._use_async_grammar_compilation = False  # so that a plan is the same each time
    made = kind(config, layout, manager, block_size=BLOCK_SIZE)
    if longest_item:
        scheduling = config.scheduler_config
        scheduling.max_num_encoder_input_tokens = scheduling.encoder_cache_size = 0
        budget, size = compute_mm_encoder_budget(scheduling, {"image": longest_item})
        made.max_num_encoder_input_tokens = budget
        made.encoder_cache_manager = EncoderCacheManager(size)
    return made


def cache_layout(
    config: VllmConfig, layers: Mapping[str, KVCacheSpec], num_blocks: int
) -> KVCacheConfig:
    """The groups of layers that share blocks, and how many blocks there are."""
    groups = kv_cache_utils.get_kv_cache_groups(config, dict(layers))
    page = kv_cache_utils._pool_bytes_per_block(config, groups)
    memory = num_blocks * page
    if num_blocks == LEAST:  # and the block that vLLM fills with nothing
        memory = kv_cache_utils._max_memory_usage_bytes_from_groups(config, groups) + page
    (layout,) = kv_cache_utils.get_kv_cache_configs(config, [dict(layers)], [memory])
    return kv_cache_utils.generate_scheduler_kv_cache_config([layout])
