"""One question about one clip, as target and drafter are asked it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headstart.drafters.port import StreamKey
from headstart.drafting.timeline import Span
from headstart.errors import SchemaError
from headstart.media.clip import Clip


@dataclass(frozen=True)
class Question:
    """The clip is read, and compared with the stream's last one."""

    clip: Clip
    words: str
    max_tokens: int
    stream: StreamKey | None = None
    change: float = 0.0
    loading: Span | None = None
    schema: str | None = None
    """The JSON schema that the answer must follow, as text; without one the answer is free."""


def schema_text(schema: Mapping[str, Any]) -> str:
    """A JSON schema as vLLM takes it. Whether an answer can follow it, vLLM decides."""
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
