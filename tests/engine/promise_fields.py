"""Every field that a request may have: the cell that tries it, or why none does.

What vLLM's `SamplingParams` and our bodies of HTTP hold is asked of them, not listed here. What a
new version brings is in neither and fails `test_promise_fields.py` until somebody has looked.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.engine.promise_cells import SETUPS, Cell

EVERYWHERE = frozenset({"max_tokens", "temperature"})
"""Fields that every cell sets."""

NOT_WORDS: Mapping[str, str] = {
    "extra_args": "what headstart is told in each cell, and bare vLLM is not",
    "output_text_buffer_length": "vLLM sets it from stop, which has a cell",
    "routed_experts_prompt_start": "says which part of a mixture's routing is handed out",
    "watermarking": "does something only in an engine with a watermark, which vLLM refuses to"
    " start beside our flags",
}
"""Of `SamplingParams`, fields without a cell, each with the reason."""

REFUSED: Mapping[str, dict[str, Any]] = {
    "min_p": {"temperature": 1.0, "min_p": 0.1},
    "logit_bias": {"logit_bias": {5: 1.0}},
    "trace_decode_token_ids": {"trace_decode_token_ids": [5, 6, 7]},
}
"""Fields that vLLM refuses request by request beside any speculative setting."""

ANOTHER_RUNNER: Mapping[str, dict[str, Any]] = {
    "prompt_logprob_token_ids": {"prompt_logprob_token_ids": [[5, 6]]},
    "prompt_logprob_start": {"prompt_logprob_token_ids": [[5, 6]], "prompt_logprob_start": 1},
}
"""Fields that vLLM takes with its V2 model runner alone, which our flags rule out."""

STRUCTURED_NOT_READ: Mapping[str, str] = dict.fromkeys(
    ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"),
    "closed over HTTP, and vLLM's default backends read the engine's setting instead",
)
"""Of `StructuredOutputsParams`, kinds without a cell."""

_PROMPT = "makes the prompt, which is the same with drafts and without"
_TOLD = "says what of the answer is told, and in what form"
_DROPPED = "is taken and not used"

BODY_BECOMES: Mapping[str, str] = {
    "max_completion_tokens": "max_tokens",
    "top_logprobs": "logprobs",
    "response_format": "structured_outputs",
    "tools": "structured_outputs",
    "tool_choice": "structured_outputs",
    "parallel_tool_calls": "structured_outputs",
}
"""Of bodies, fields that vLLM turns into another of `SamplingParams`."""

BODY_NOT_WORDS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "messages",
            "prompt",
            "add_generation_prompt",
            "add_special_tokens",
            "chat_template_kwargs",
            "continue_final_message",
            "reasoning_effort",
            "truncate_prompt_tokens",
            "truncation_side",
        ),
        _PROMPT,
    ),
    **dict.fromkeys(
        (
            "echo",
            "include_reasoning",
            "return_prompt_text",
            "return_token_ids",
            "return_tokens_as_token_ids",
            "stream",
            "stream_options",
        ),
        _TOLD,
    ),
    **dict.fromkeys(
        (
            "metadata",
            "modalities",
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "store",
            "user",
            "verbosity",
        ),
        _DROPPED,
    ),
    "cache_salt": "says with whom cached blocks are shared; cached prompts have a cell",
    "headstart": "names the stream, as every cell does",
    "model": "names the target or its adapter, which has a setup",
    "prediction": "becomes a draft, as in every cell",
    "session_id": "names the stream, as every cell does",
    "vllm_xargs": "holds nothing but the session's name",
}
"""Of bodies, fields that are none of `SamplingParams`, each with why it needs no cell."""


def cells() -> list[Cell]:
    """All cells of all setups."""
    return [cell for setup in SETUPS for cell in setup.cells]


def fields_with_cells() -> frozenset[str]:
    """Of `SamplingParams`."""
    return EVERYWHERE.union(*(cell.fields() for cell in cells()))


def settings_made(field: str) -> Iterable[Any]:
    """What cells give for one field."""
    return [made[field] for cell in cells() for made in cell.examples() if field in made]
