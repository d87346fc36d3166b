"""Makes requests for a fuzz from schemas: ours of what is accepted, and vLLM's own.

maker = RequestMaker(seed=7, model="target", url=lambda kind: "data:video/mp4;base64,...")
maker.ours("/v1/chat/completions")   # valid for our server
maker.vllms("/v1/chat/completions")  # valid by vLLM's own schema; ours may refuse a field
"""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter

from headstart_server.bodies.routes import BODIES, DETOKENIZE, TOKENIZE, read_body
from headstart_server.refusal import RefusedError
from headstart_server.routes import CHAT, COMPLETIONS

MAX_OPTIONAL = 8
MAX_TOKENS = 8
MAX_DEPTH = 6
_WORDS = (
    "a",
    "What is happening?",
    "Straße",
    "道路",
    "\n",
    "a" * 200,
    "<video>",
    "<image>",
    "</s>",
)
_SCHEMAS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {"road": {"enum": ["wet", "dry"]}}, "required": ["road"]},
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 3},
    {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"b": {}}}}},
]
_TAG = {"type": "triggered_tags", "triggers": ["<a>"], "tags": []}
# Values of fields whose schema says no more than "an object" or "a text".
_SAMPLES: dict[str, list[Any]] = {
    "schema": _SCHEMAS,
    "parameters": _SCHEMAS,
    "json": [*_SCHEMAS, '{"type": "object"}'],
    "regex": ["[ab]{1,3}", "(yes|no)", "[0-9]+", "(a+)+b", "\\w{1,400}"],
    "grammar": ['root ::= "yes" | "no"', "root ::= [a-z]+"],
    "structural_tag": ['{"type": "structural_tag", "format": {"type": "any_text"}}'],
    "format": [{"type": "any_text"}, {"type": "json_schema", "json_schema": _SCHEMAS[1]}, _TAG],
    "mm_processor_kwargs": [
        {"crop_size": {"height": 28, "width": 28}},
        {"size": {"shortest_edge": 2048}},
        {"do_resize": False},
        {"do_rescale": False, "image_mean": [0, 0, 0], "image_std": [0, 0, 0]},
        {"num_frames": 1},
    ],
    "media_io_kwargs": [
        {"video": {"num_frames": -1}},
        {"video": {"num_frames": 64, "fps": 1000}},
        {"image": {"image_mode": "L"}},
    ],
    "chat_template": ["{{ messages[0].content }}", "{% for i in range(9) %}{{ i }}{% endfor %}"],
    "chat_template_kwargs": [{"enable_thinking": False}, {"tokenize": False}, {"padding": True}],
    "kv_transfer_params": [{"do_remote_prefill": True, "remote_block_ids": [0, 1]}],
    "ec_transfer_params": [{"do_remote_encode": True}],
    "vllm_xargs": [{"session_id": "front"}, {"headstart": '{"tenant": "other"}'}, {"a": [1, 2.5]}],
    "arguments": ["{}", '{"place": "here"}'],
    "prompt_embeds": ["AAAA"],
    "data": ["AAAA"],
}

Schema = Mapping[str, Any]


class RequestMaker:
    """Makes one body after another from a seed. Used from one thread only."""

    def __init__(
        self,
        seed: int,
        model: str = "target",
        url: Callable[[str], str] = lambda kind: "data:video/mp4;base64,AAAA",
        vocabulary: int = 256,
    ) -> None:
        """``url`` gives the address for an ``image_url``, a ``video_url`` or an ``event_url``."""
        self._chance = random.Random(seed)
        self._model = model
        self._url = url
        self._vocabulary = vocabulary
        self._ours = {path: adapter.json_schema() for path, adapter in BODIES.items()}
        self._vllms = _vllm_schemas()

    def ours(self, path: str) -> dict[str, Any]:
        """A body that our own check accepts: any of its fields, anywhere in its range."""
        for _ in range(1000):
            body = self._agreeing(self._body(path, self._ours[path]))
            try:
                read_body(path, json.dumps(body).encode())
            except RefusedError:
                continue  # fields that exclude each other
            return body
        raise RuntimeError(f"a thousand bodies for {path} and none is valid; see `_agreeing`")

    def vllms(self, path: str) -> dict[str, Any]:
        """A body that is valid by vLLM's own schema, with any of its fields.

        vLLM's schema states few ranges, so most values of fields that we accept are within ours.
        """
        body = self._body(path, self._vllms[path])
        ours = self._ours[path]
        for name, schema in ours.get("properties", {}).items():
            if name in body and name != "model" and self._chance.random() < 0.7:
                body[name] = self._value(schema, ours.get("$defs", {}), (name,))
        if path == COMPLETIONS:
            body.setdefault("prompt", "a")
        return self._cheap(path, body)

    def _body(self, path: str, schema: Schema) -> dict[str, Any]:
        body: dict[str, Any] = self._value(schema, schema.get("$defs", {}), ())
        body["model"] = self._model
        return self._cheap(path, body)

    def _cheap(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Shorten most answers, which take the engine's time."""
        if path in (CHAT, COMPLETIONS) and self._chance.random() < 0.9:
            body["max_tokens"] = self._chance.randint(1, MAX_TOKENS)
            body.pop("max_completion_tokens", None)
            body.pop("min_tokens", None)
        return body

    def _agreeing(self, body: dict[str, Any]) -> dict[str, Any]:
        """Add a question, and correct combinations of fields that vLLM refuses."""
        if "messages" in body and self._chance.random() < 0.7:
            body["messages"].append(self._question())
        if body.get("stream_options") is not None:
            body["stream"] = True
        if body.get("stream"):
            body.pop("prompt_logprobs", None)
        if body.get("top_logprobs") or body.get("logprob_token_ids"):
            body["logprobs"] = True if "messages" in body else 1
        if body.get("temperature") == 0:
            body.pop("n", None)
        if body.get("add_generation_prompt"):
            body.pop("continue_final_message", None)
        if (choice := body.get("tool_choice")) is not None:
            body.setdefault("tools", [{"type": "function", "function": {"name": "look"}}])
            if isinstance(choice, dict) and body["tools"]:
                choice["function"]["name"] = body["tools"][0]["function"]["name"]
        if isinstance(body.get("n"), int):
            body["n"] = min(body["n"], 8)
        return body

    def _question(self) -> dict[str, Any]:
        """A message that mostly has media; the schema alone rarely makes one."""
        kinds = ("video_url", "video_url", "image_url", "event_url")
        shown = self._chance.sample(kinds, self._chance.choice((0, 1, 1, 1, 2)))
        content = [{"type": kind, kind: {"url": self._url(kind)}} for kind in shown]
        return {"role": "user", "content": [*content, {"type": "text", "text": "What?"}]}

    def _value(self, schema: Schema, definitions: Schema, at: tuple[str, ...]) -> Any:
        """A value for a schema. ``at``: the path of fields to it."""
        name = at[-1] if at else ""
        if "$ref" in schema:
            return self._value(definitions[schema["$ref"].rpartition("/")[2]], definitions, at)
        if name == "url" or (name.endswith("_url") and schema.get("type") == "string"):
            return self._url(at[-2] if name == "url" and len(at) > 1 else name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        if name in _SAMPLES and "properties" not in schema and "items" not in schema:
            fitting = [v for v in _SAMPLES[name] if _fits(v, schema)]
            if fitting:
                return self._chance.choice(fitting)
        if "examples" in schema:
            return self._chance.choice(schema["examples"])
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return self._value(self._one_of(schema[several], at), definitions, at)
        return self._plain(schema, definitions, at)

    def _one_of(self, choices: list[Schema], at: tuple[str, ...]) -> Schema:
        # Null tests little, and deep nesting must end.
        useful = [c for c in choices if c.get("type") != "null"]
        if not useful or self._chance.random() < 0.05:
            return self._chance.choice(choices)
        if len(at) > MAX_DEPTH:
            useful = [c for c in useful if "type" in c and c["type"] not in ("object", "array")]
        return self._chance.choice(useful or choices)

    def _plain(self, schema: Schema, definitions: Schema, at: tuple[str, ...]) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = self._chance.choice(kind)
        match kind:
            case "object":
                return self._object(schema, definitions, at)
            case "array":
                low, high = schema.get("minItems", 0), schema.get("maxItems", 1 << 20)
                count = min(high, max(low, self._chance.choice((0, 1, 1, 1, 2, 4))))
                items = schema.get("items", {})
                return [self._value(items, definitions, (*at, "item")) for _ in range(count)]
            case "string":
                return self._text(schema)
            case "integer":
                return self._whole(schema)
            case "number":
                low, high = _range(schema, -100.0, 100.0)
                ends = (low, high, 0.0, 1.0, self._chance.uniform(low, high))
                return min(high, max(low, self._chance.choice(ends)))
            case "boolean":
                return self._chance.random() < 0.5
            case "null":
                return None
        return self._chance.choice((None, 1, "a", ["a"], {"a": 1}))  # anything

    def _object(self, schema: Schema, definitions: Schema, at: tuple[str, ...]) -> dict[str, Any]:
        fields: Schema = schema.get("properties", {})
        required = schema.get("required", [])
        optional = [name for name in fields if name not in required]
        most = MAX_OPTIONAL if not at else 2
        chosen = self._chance.sample(optional, self._chance.randint(0, min(most, len(optional))))
        made = {
            name: self._value(fields[name], definitions, (*at, name))
            for name in (*required, *chosen)
        }
        keyed = schema.get("patternProperties", {})
        inner = next(iter(keyed.values()), schema.get("additionalProperties"))
        if isinstance(inner, Mapping) and not fields:
            for _ in range(self._chance.randint(0, 3)):
                key = str(self._chance.randrange(self._vocabulary))
                made[key] = self._value(inner, definitions, (*at, "item"))
        return made

    def _text(self, schema: Schema) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
        text = self._chance.choice(_WORDS) * self._chance.choice((1, 1, 1, 20))
        return (text[:high] or "").ljust(low, "x")

    def _whole(self, schema: Schema) -> int:
        if schema.get("format") == "token-id":
            return self._chance.randrange(self._vocabulary)
        low, high = _range(schema, -(2**63), 2**63 - 1)
        near = [value for value in range(-1, 9) if low <= value <= high]
        far = [int(low), int(high), self._chance.randint(int(low), int(high))]
        return self._chance.choice(near if near and self._chance.random() < 0.8 else far)


def _range(schema: Schema, low: float, high: float) -> tuple[float, float]:
    step = 1 if schema["type"] == "integer" else 1e-3
    low = schema.get("minimum", low)
    high = schema.get("maximum", high)
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    return low, high


def _fits(value: Any, schema: Schema) -> bool:
    """Whether a sample has the type that a schema states, if it states one."""
    kinds = {"object": dict, "string": str, "array": list}
    named = [schema.get("type"), *(c.get("type") for c in schema.get("anyOf", ()))]
    named = [kind for kind in named if kind in kinds]
    return not named or any(isinstance(value, kinds[kind]) for kind in named)


def _vllm_schemas() -> dict[str, Schema]:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.serve.tokenize.protocol import DetokenizeRequest, TokenizeRequest

    return {
        CHAT: ChatCompletionRequest.model_json_schema(),
        COMPLETIONS: CompletionRequest.model_json_schema(),
        TOKENIZE: TypeAdapter(TokenizeRequest).json_schema(),
        DETOKENIZE: DetokenizeRequest.model_json_schema(),
    }
