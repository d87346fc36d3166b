"""One question about one clip, on its way to the target and the drafter."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.answers.timeline import Span
from headstart.engine.request_tags import RequestTags
from headstart.errors import RequestOptionsError, SchemaError
from headstart.media.clip import Clip
from headstart.speculation.drafter import StreamKey

_TAKEN = ("max_tokens", "structured_outputs", "output_kind", "extra_args", "n", "detokenize")


@dataclass(frozen=True)
class RequestOptions:
    """Of all questions of a session. What one computes of a clip serves no other."""

    system: str = ""
    """A system prompt."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's ``SamplingParams``, by its names; without ``temperature``, answers are greedy.
    """
    lora: str | Path | None = None
    """The directory of an adapter; the engine needs vLLM's ``enable_lora``."""

    def __post_init__(self) -> None:
        taken = [name for name in _TAKEN if name in self.sampling]
        if taken:
            raise RequestOptionsError(
                f"sampling cannot set {', '.join(taken)}: headstart does. The length and the"
                " schema of an answer are given with its question"
            )
        if self.lora is not None and not Path(self.lora).is_dir():
            raise RequestOptionsError(f"{self.lora} is no directory: give that of a LoRA adapter")

    def params(self, **more: Any) -> Any:
        """vLLM's sampling parameters: these, and what each request adds."""
        from vllm import SamplingParams

        try:
            return SamplingParams(**{"temperature": 0.0, **self.sampling, **more})
        except (TypeError, ValueError) as error:
            raise RequestOptionsError(
                f"vLLM does not take the sampling parameters: {error}. They are those of its"
                " SamplingParams, e.g. temperature=0.7"
            ) from error


@dataclass(frozen=True)
class Question:
    """What is asked, and all that gives its answer a head start."""

    words: str
    clip: Clip | None = None
    """What the models look at. Over HTTP only the events: vLLM gets the pictures itself."""
    max_tokens: int = 256
    stream: StreamKey | None = None
    tenant: str = ""
    options: RequestOptions = field(default_factory=RequestOptions)
    loading: Span | None = None
    schema: str | None = None
    """The JSON schema that the answer must follow, as text. Over HTTP vLLM gets it itself."""
    is_free: bool = True
    """Whether the answer may be any text; not if a schema or another grammar binds it."""
    prediction: tuple[int, ...] | None = None
    """A draft of the whole answer, where the caller has one."""
    is_drafted: bool = True
    """Whether drafts are looked for at all; if not, the request is left to vLLM alone."""
    previews: bool = False
    """Whether drafted words are shown before the target has said them."""
    window: str = ""
    """Of a live camera: what rehearsals of the question are found by."""
    is_private: bool = False
    """Whether its answer is to be written to no log."""

    def tags(self, name: str, change: float = 0.0) -> RequestTags | None:
        """What the request to vLLM says to the drafters; ``change`` is that of the scene."""
        if not self.is_drafted:
            return None
        return RequestTags(
            self.stream,
            self.tenant,
            self.words,
            change,
            self.prediction or (),
            name,
            self.previews,
            self.window,
        )


def schema_text(schema: Mapping[str, Any]) -> str:
    """A JSON schema as vLLM takes it. vLLM decides whether an answer can follow it."""
    if not isinstance(schema, Mapping):
        raise SchemaError(
            f"a schema is a JSON object, not {type(schema).__name__}: give a mapping such as"
            ' {"type": "object", "properties": {"safe": {"type": "boolean"}}}'
        )
    try:
        return json.dumps(dict(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(
            f"the schema cannot be written as JSON ({error}): use plain objects, lists, texts,"
            " numbers, true, false and null in it"
        ) from error
