"""What the promise is tried on: settings of requests, and the engines they are asked on."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.engine.promise_engine import BLOCK_SIZE, MAX_DRAFT_TOKENS, MAX_MODEL_LEN, MAX_NUM_SEQS
from tests.engine.promise_model import NUM_TEXT_IDS

MAX_TOKENS = 40
MIN_TOKENS = 8
_CACHED_LENGTHS = (BLOCK_SIZE + 1, 2 * BLOCK_SIZE + 1)
"""Blocks are cached whole and one token is always computed: asked again, these are decodes."""

Settings = Callable[[tuple[int, ...], str, Random], dict[str, Any]]
"""From what the model says when nothing is asked of it, tokens and text."""


@dataclass(frozen=True)
class Cell:
    """One kind of request."""

    name: str
    settings: Settings
    changes: bool = True
    """Whether the settings make the model say something else than without them."""
    withheld: str = ""
    """Why no draft is verified here."""
    ends_by: str = ""
    """vLLM's reason for the end of at least one answer, where the settings add one."""
    words_only: bool = False
    """Whether logprobs are not compared: bare vLLM's own depend on who else is in the batch."""
    lengths: tuple[int, ...] = (20, 50, *_CACHED_LENGTHS)
    """Of prompts, in tokens."""
    thinks: bool = False
    """Whether its prompts end with the mark that begins thinking."""
    adapter: bool = False
    """Whether every second request asks for a LoRA adapter."""
    priorities: bool = False
    preempts: bool = False
    """Whether the engine is so small that requests are put back."""

    def examples(self) -> list[dict[str, Any]]:
        """Settings that it makes, of all its kinds."""
        tokens, text = tuple(range(3, 43)), "the car stops at the light and waits"
        return [self.settings(tokens, text, Random(seed)) for seed in range(20)]

    def fields(self) -> frozenset[str]:
        """Of `SamplingParams`, those that it sets now and then."""
        return frozenset(name for settings in self.examples() for name in settings)


@dataclass(frozen=True)
class Setup:
    """One pair of engines, with our flags and without, and what both are asked."""

    name: str
    cells: tuple[Cell, ...]
    engine: Mapping[str, Any] = field(default_factory=dict)


def _always(**settings: Any) -> Settings:
    return lambda tokens, text, chance: settings


def _min_tokens(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    """The model wants to end before, at or after the least length."""
    place = min(chance.choice((2, MIN_TOKENS, MIN_TOKENS + 4)), len(tokens) - 1)
    return {"min_tokens": MIN_TOKENS, "stop_token_ids": [tokens[place]]}


def _stop_strings(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    """Two letters out of the answer, wherever tokens begin and end."""
    place = chance.randrange(len(text) // 3, max(len(text) // 3 + 1, len(text) - 2))
    stop = text[place : place + 2]
    return {"stop": [stop or "the"], "include_stop_str_in_output": chance.random() < 0.5}


def _stop_token_ids(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    return {"stop_token_ids": [chance.choice(tokens[len(tokens) // 2 :])]}


def _bad_words(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    words = sorted({word for word in text.split() if word.isascii()})
    return {"bad_words": chance.sample(words, min(4, len(words))) or ["the"]}


def _allowed_token_ids(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    return {"allowed_token_ids": sorted(chance.sample(range(2, NUM_TEXT_IDS), NUM_TEXT_IDS // 2))}


def _repetition_detection(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    """The model is made to repeat itself."""
    from vllm.sampling_params import RepetitionDetectionParams

    detection = RepetitionDetectionParams(max_pattern_size=4, min_pattern_size=1, min_count=3)
    return {
        "repetition_detection": detection,
        "frequency_penalty": -2.0,
        "presence_penalty": -2.0,
        "ignore_eos": True,
    }


def _told_otherwise(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    """The same words in another form."""
    from vllm.sampling_params import RequestOutputKind

    forms: tuple[dict[str, Any], ...] = (
        {"flat_logprobs": True, "logprobs": 2},
        {"detokenize": False, "output_kind": RequestOutputKind.FINAL_ONLY},
        {"skip_special_tokens": False, "spaces_between_special_tokens": False},
        {"stream_interval": 5, "skip_clone": True},
    )
    return chance.choice(forms)


def _thinking_token_budget(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
    return {"thinking_token_budget": chance.choice((0, 3, 8, 15))}


def _structured(kind: str, *specifications: Any) -> Settings:
    """One of these grammars; ended by the grammar or by the longest answer allowed."""

    def settings(tokens: tuple[int, ...], text: str, chance: Random) -> dict[str, Any]:
        from vllm.sampling_params import StructuredOutputsParams

        return {
            "structured_outputs": StructuredOutputsParams(**{kind: chance.choice(specifications)})
        }

    return settings


_SCENE = {
    "type": "object",
    "properties": {
        "light": {"enum": ["red", "green", "amber"]},
        "cars": {"type": "integer", "minimum": 0, "maximum": 99},
        "note": {"type": "string", "maxLength": 12},
    },
    "required": ["light", "cars", "note"],
    "additionalProperties": False,
}
_TOOL_CALLS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 2,
    "items": {
        "type": "object",
        "properties": {"name": {"enum": ["brake", "steer"]}, "parameters": _SCENE},
        "required": ["name", "parameters"],
        "additionalProperties": False,
    },
}
_MOVES = """
root ::= move (", then " move){1,4}
move ::= "turn left" | "turn right" | "go straight ahead" | "stop (" [a-z]{1,6} ")"
"""
_NUMBERED = """
root ::= (digit ": " word "\\n"){2,5}
digit ::= [0-9]
word ::= "road" | "car" | "light" | "rains"
"""
_TAG = {
    "type": "tag",
    "begin": "<scene>",
    "content": {"type": "json_schema", "json_schema": _SCENE},
    "end": "</scene>",
}
_FREE_THEN_TAG = {
    "type": "sequence",
    "elements": [
        {"type": "any_text", "max_chars": 12, "excludes": ["<"]},
        _TAG,
    ],
}


def _tag_of(form: Mapping[str, Any]) -> str:
    return json.dumps({"type": "structural_tag", "format": form})


STRUCTURED = (
    Cell("JSON schema", _structured("json", _SCENE, _TOOL_CALLS)),
    Cell(
        "regex",
        _structured(
            "regex",
            r"(red|green|amber) light, [0-9]{1,3} cars(, (wet|dry) road){0,3}",
            r"[a-z]{3,8}( [a-z]{3,8}){2,5}\.",
        ),
    ),
    Cell(
        "choice",
        _structured(
            "choice",
            ["turn left", "turn right", "go straight ahead, then stop"],
            ["The car stops at the light.", "The car waits at the light.", "Nobody waits."],
        ),
    ),
    Cell("grammar", _structured("grammar", _MOVES, _NUMBERED)),
    Cell("any JSON object", _structured("json_object", True)),
    Cell("structural tag", _structured("structural_tag", _tag_of(_TAG), _tag_of(_FREE_THEN_TAG))),
)

BUDGET = Cell(
    "thinking_token_budget",
    _thinking_token_budget,
    thinks=True,
    withheld="no draft is verified while a request has a budget for thinking",
)
_NAMED = "no draft is verified while a request names tokens for its logprobs"
_PROMPTS = "headstart leaves requests for the prompt's logprobs to vLLM"
_ON_A_CPU = "on a CPU no draft is verified while a request samples"
GREEDY = Cell("temperature 0", _always(), changes=False)
_LORA = Cell("LoRA", _always(), adapter=True)
_CROWDED = Cell("KV exhaustion", _always(ignore_eos=True), preempts=True)

# Each mode tells something else once something else than the likeliest token is wanted.
_LOGPROBS = (
    Cell("logprobs", _always(logprobs=3), changes=False),
    Cell("logprobs and penalties", _always(logprobs=3, repetition_penalty=1.5)),
    Cell("logprobs and bad_words", lambda *given: {"logprobs": 3, **_bad_words(*given)}),
    Cell("prompt_logprobs", _always(prompt_logprobs=2), changes=False, withheld=_PROMPTS),
    Cell("logprob_token_ids", _always(logprob_token_ids=[5, 6, 7]), False, withheld=_NAMED),
)

_REASONING = {"reasoning_parser": "deepseek_r1"}
# One adapter, and room for another: vLLM 0.32 on a CPU answers a request without an adapter, beside
# one with it, by what is in the last place for adapters. That must be empty.
_ADAPTERS = {"enable_lora": True, "max_loras": 2}
_FEW_BLOCKS = {"max_model_len": 4 * BLOCK_SIZE, "num_gpu_blocks_override": 6}
# vLLM 0.32 caches a block when it lays out the step that will fill it. A request of low priority
# that is laid out and then preempted in one step leaves such a block unfilled, and bare vLLM, too,
# then answers from it. So there is no prefix caching beside priorities.
_PRIORITIES = {"scheduling_policy": "priority", "enable_prefix_caching": False}
_THRESHOLD = {"long_prefill_token_threshold": MAX_DRAFT_TOKENS // 2}
_SMALL_CHUNKS = {"max_num_batched_tokens": 24}
_WHOLE_PROMPTS = {"enable_chunked_prefill": False, "max_num_batched_tokens": MAX_MODEL_LEN}
# With adapters, vLLM wants room for everybody's draft.
_CHUNKS_OF_DRAFTS = {"max_num_batched_tokens": MAX_NUM_SEQS * (1 + MAX_DRAFT_TOKENS)}

SETUPS = (
    Setup(
        "plain",
        (
            GREEDY,
            Cell(
                "temperature 1, seeded",
                _always(temperature=1.0, seed=7),
                lengths=_CACHED_LENGTHS,
                withheld=_ON_A_CPU,
            ),
            Cell(
                "top_k and top_p, seeded",
                _always(temperature=1.0, seed=7, top_k=20, top_p=0.9),
                withheld=_ON_A_CPU,
            ),
            Cell("n = 4, seeded", _always(temperature=1.0, seed=7, n=4), withheld=_ON_A_CPU),
            Cell("min_tokens", _min_tokens),
            Cell("stop strings", _stop_strings),
            Cell("stop_token_ids", _stop_token_ids),
            Cell("bad_words", _bad_words),
            Cell("presence_penalty", _always(presence_penalty=1.5)),
            Cell("frequency_penalty", _always(frequency_penalty=1.5)),
            Cell("repetition_penalty", _always(repetition_penalty=1.5)),
            Cell("allowed_token_ids", _allowed_token_ids),
            Cell("logprobs", _always(logprobs=3), changes=False),
            Cell(
                "prompt_logprobs",
                _always(prompt_logprobs=2),
                changes=False,
                withheld=_PROMPTS,
            ),
            Cell(
                "logprob_token_ids",
                _always(logprob_token_ids=[5, 6, 7]),
                changes=False,
                withheld=_NAMED,
            ),
            Cell(
                "logprob_token_ids and logprobs",
                _always(logprob_token_ids=[5, 6, 7], logprobs=3),
                changes=False,
                withheld=_NAMED,
            ),
            Cell("repetition_detection", _repetition_detection, ends_by="repetition"),
            Cell("told in another form", _told_otherwise, changes=False),
            Cell(
                "skip_reading_prefix_cache",
                _always(skip_reading_prefix_cache=True),
                changes=False,
                lengths=_CACHED_LENGTHS,
            ),
            Cell("prompt cached but for one token", _always(), False, lengths=_CACHED_LENGTHS),
            Cell(
                "max_model_len reached",
                _always(max_tokens=MAX_MODEL_LEN, ignore_eos=True),
                lengths=tuple(MAX_MODEL_LEN - room for room in (2, 9, MAX_DRAFT_TOKENS + 1, 30)),
            ),
            *STRUCTURED,
        ),
    ),
    Setup("reasoning parser", (BUDGET, *STRUCTURED), _REASONING),
    Setup("LoRA", (_LORA,), _ADAPTERS),
    Setup("few blocks", (_CROWDED,), _FEW_BLOCKS),
    Setup(
        "few blocks, priorities",
        (replace(_CROWDED, name="priority scheduling", priorities=True),),
        _FEW_BLOCKS | _PRIORITIES,
    ),
    Setup("long_prefill_token_threshold", (GREEDY,), _THRESHOLD),
    Setup("chunked prefill", (GREEDY,), _SMALL_CHUNKS),
    Setup("no chunked prefill", (GREEDY, BUDGET), _WHOLE_PROMPTS | _REASONING),
    Setup("no prefix caching", (GREEDY,), {"enable_prefix_caching": False}),
    *(
        Setup(f"logprobs_mode {mode}", _LOGPROBS, {"logprobs_mode": mode})
        for mode in ("raw_logits", "processed_logits", "processed_logprobs")
    ),
    Setup(
        "all of these",
        tuple(
            replace(cell, adapter=True, priorities=True)
            for cell in (GREEDY, _CROWDED, BUDGET, *STRUCTURED)
        ),
        _REASONING | _ADAPTERS | _FEW_BLOCKS | _PRIORITIES | _THRESHOLD | _CHUNKS_OF_DRAFTS,
    ),
)
