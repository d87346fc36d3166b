"""The fields that chat completions and completions have in common."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Tag

from headstart_server.bodies.grammars import ResponseFormat, StructuredOutputs
from headstart_server.bodies.kinds import (
    MAX_COUNT,
    Body,
    CacheSalt,
    Count,
    Dropped,
    Int64,
    Name,
    TokenId,
    TokenIds,
    rule,
    tagged_by_kind,
)

MOST_LOGPROBS = 20
StopText = Annotated[str, Field(min_length=1, max_length=1024)]
Stop = Annotated[
    Annotated[StopText, Tag("(text)")]
    | Annotated[list[StopText], Field(fail_fast=True, max_length=4), Tag("(list)")],
    tagged_by_kind("a text or a list of texts"),
]
Bias = Annotated[float, Field(ge=-100, le=100)]
TokenKey = Annotated[str, Field(pattern="^[0-9]{1,10}$")]
MOST_BIASES = 1024


def _few(biases: Any) -> Any:
    """Count first: pydantic would list an error for each of a million."""
    if isinstance(biases, dict) and len(biases) > MOST_BIASES:
        raise rule(f"must have at most {MOST_BIASES} items")
    return biases


LogitBias = Annotated[
    dict[TokenKey, Bias],
    Field(max_length=MOST_BIASES, json_schema_extra={"additionalProperties": False}),
    BeforeValidator(_few),
]


SessionName = Annotated[str, Field(max_length=128)]
"""An empty one names no session."""


class StreamOptions(Body):
    """What a stream holds beside the answer."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: Dropped = None


class RepetitionDetection(Body):
    """When vLLM ends an answer that repeats itself."""

    max_pattern_size: int = Field(default=0, ge=0, le=128)
    min_pattern_size: int = Field(default=0, ge=0, le=128)
    min_count: int = Field(default=0, ge=0, le=1024)


class ExtraArguments(Body):
    """The only entry of vLLM's ``vllm_xargs`` that clients may set."""

    session_id: SessionName | None = None


class HeadstartOptions(Body):
    """The ``headstart`` object of a request; without it the response is vLLM's own to the byte."""

    stream: Name | None = Field(
        default=None,
        description="The camera whose answers are remembered. Each tenant's streams are its own.",
    )
    preview: bool = Field(default=False, description="Show drafts while the answer is on its way.")
    timeline: bool = Field(
        default=False, description="Report how long each stage of the answer took."
    )


class Sampling(Body):
    """Sampling parameters and other common fields."""

    model: Annotated[str, Field(max_length=512)] | None = None
    max_tokens: Count | None = None
    min_tokens: Count = 0
    n: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=MAX_COUNT)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Int64 | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    # vLLM takes any number above 0; beyond these, logits become infinite and then no number.
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] | None = None
    logit_bias: LogitBias | None = None
    allowed_token_ids: Annotated[TokenIds, Field(min_length=1)] | None = None
    bad_words: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]],
        Field(fail_fast=True, max_length=128),
    ] = Field(default_factory=list)
    stop: Stop | None = None
    stop_token_ids: Annotated[TokenIds, Field(max_length=1024)] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    repetition_detection: RepetitionDetection | None = None
    thinking_token_budget: Annotated[int, Field(ge=-1, le=MAX_COUNT)] | None = None

    prompt_logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = None
    logprob_token_ids: (
        Annotated[list[TokenId], Field(fail_fast=True, min_length=1, max_length=128)] | None
    ) = None
    return_tokens_as_token_ids: bool | None = None
    return_token_ids: bool | None = None

    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None

    add_special_tokens: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    truncate_prompt_tokens: Annotated[int, Field(ge=-1, le=MAX_COUNT)] | None = None
    truncation_side: Literal["left", "right"] | None = None

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stream_interval: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None

    session_id: SessionName | None = None
    vllm_xargs: ExtraArguments | None = None
    cache_salt: CacheSalt | None = None
    headstart: HeadstartOptions | None = None

    user: Dropped = None
    store: Dropped = None
    metadata: Dropped = None
    service_tier: Dropped = None
    safety_identifier: Dropped = None
    prompt_cache_key: Dropped = None
    prompt_cache_retention: Dropped = None

    ours: ClassVar[frozenset[str]] = frozenset({"headstart", "prediction"})
    """Fields that vLLM does not know."""
