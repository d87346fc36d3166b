"""The bodies of requests: every field within its range and beyond it."""

import json
from http import HTTPStatus
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import ValidationError

from headstart_server.bodies import grammars, messages, routes, sampling
from headstart_server.bodies.kinds import Body
from headstart_server.bodies.routes import (
    BODIES,
    DETOKENIZE,
    TOKENIZE,
    ChatBody,
    CompletionBody,
    constraint_of,
    content_of,
    read_body,
)
from headstart_server.bodies.wording import CLOSED
from headstart_server.limits import Limits
from headstart_server.parsed_request import BodyBounds
from headstart_server.refusal import RefusedError
from headstart_server.routes import CHAT, COMPLETIONS
from headstart_server.schema import openapi_schema
from tests.soak.request_maker import RequestMaker

VOCABULARY = 500
LEAST: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "What?"}]},
    COMPLETIONS: {"prompt": "What?"},
    TOKENIZE: {"prompt": "What?"},
    DETOKENIZE: {"tokens": [1]},
}


def checked(body: dict[str, Any], path: str = CHAT, **more: Any) -> dict[str, Any]:
    """The content that vLLM gets of a body; raises where it is refused."""
    given = read_body(path, json.dumps(body).encode())
    content = content_of(given)
    bounds = BodyBounds(more.pop("limits", Limits()), VOCABULARY, **more)
    bounds.check(given, content)
    bounds.grammar(given)
    return content


def refusal(body: dict[str, Any], path: str = CHAT, **more: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        checked(body, path, **more)
    assert caught.value.status == HTTPStatus.BAD_REQUEST
    return caught.value.message


def part(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [fields]}]}


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth - 1):
        inner = {"a": inner}
    return inner


BOOLEAN = ([True, False], [0, 1, "true", "false", [], {}])
NULLABLE = ([True, False, None], [0, "true", []])
PENALTY = ([-2, 2, 0.5, 0, None], [-2.001, 2.001, "1", True, [1]])
COUNT = ([0, 1, 2**31 - 1], [-1, 2**31, 1.0, "1", True])
IDS = ([[0], [499, 1], None], [[500], [-1], [1.0], ["1"], [True], 1, "1"])
IGNORED = (["a", 7, {"a": 1}, None], [])
SCHEMA = {"type": "object", "properties": {"road": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}

# Of each field: values that are taken, the ends of its range among them, and values that are not.
COMMON: dict[str, tuple[list[Any], list[Any]]] = {
    "model": (["target", "", "a" * 512, None], ["a" * 513, 7, ["target"]]),
    "max_tokens": ([*COUNT[0], None], COUNT[1]),
    "min_tokens": COUNT,
    "n": ([1, 8, None], [0, -1, 9, 16000, "9", "16000", 9.0, 16000.0, True]),
    "temperature": ([0, 2, 0.7, None], [-0.001, 2.001, "1", True, [0]]),
    "top_p": ([1, 0.001, None], [0, 1.001, "1", True]),
    "top_k": ([-1, 0, 2**31 - 1, None], [-2, 2**31, 5.0, "5"]),
    "min_p": ([0, 1, 0.5, None], [-0.001, 1.001, "0"]),
    "seed": ([-(2**63), 2**63 - 1, 0, None], [-(2**63) - 1, 2**63, 7.0, "7", True]),
    "frequency_penalty": PENALTY,
    "presence_penalty": PENALTY,
    "repetition_penalty": ([0.01, 100, 1.1, None], [0, 0.009, 101, -1, "1"]),
    "logit_bias": (
        [{}, {"0": -100, "499": 100}, None],
        [{"500": 1}, {"-1": 1}, {"a": 1}, {"1": 101}, {"1": "1"}, {"1": True}, [1]],
    ),
    "allowed_token_ids": (IDS[0], [*IDS[1], []]),
    "bad_words": ([[], ["a"], ["a" * 256] * 128], [[""], ["a"] * 129, ["a" * 257], "a", [7]]),
    "stop": (["a", ["a"] * 4, [], "a" * 1024, None], ["", [""], ["a"] * 5, "a" * 1025, 7, [7]]),
    "stop_token_ids": ([*IDS[0], [], [1] * 1024], [*IDS[1], [1] * 1025]),
    "include_stop_str_in_output": BOOLEAN,
    "ignore_eos": BOOLEAN,
    "repetition_detection": (
        [{}, {"max_pattern_size": 128, "min_pattern_size": 1, "min_count": 1024}, None],
        [{"max_pattern_size": 129}, {"min_count": 1025}, {"min_count": -1}, {"a": 1}, 7],
    ),
    "thinking_token_budget": ([-1, 0, 2**31 - 1, None], [-2, 2**31, 1.0, True]),
    "prompt_logprobs": ([0, 20, None], [-1, 21, 1.0, True]),
    "logprob_token_ids": ([*IDS[0], [1] * 128], [*IDS[1], [], [1] * 129]),
    "return_tokens_as_token_ids": NULLABLE,
    "return_token_ids": NULLABLE,
    "response_format": (
        [
            None,
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": nested(64)}},
            {"type": "structural_tag", "format": {"type": "any_text"}},
            {"type": "structural_tag", "triggers": ["<"], "structures": []},
        ],
        [
            "text",
            {},
            {"type": "grammar"},
            {"type": "text", "json_schema": {}},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": {"name": "a"}},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": nested(65)}},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"a": 2**64}}},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": True}},
            {"type": "structural_tag"},
            {"type": "structural_tag", "format": {}, "triggers": []},
        ],
    ),
    "structured_outputs": (
        [
            None,
            {"json": SCHEMA},
            {"json": json.dumps(SCHEMA)},
            {"regex": "(yes|no)"},
            {"choice": ["a"] * 1024},
            {"grammar": "root ::= 'a'"},
            {"json_object": True},
            {"structural_tag": '{"type": "structural_tag", "format": {"type": "any_text"}}'},
        ],
        [
            {},
            {"json": SCHEMA, "regex": "a"},
            {"json": "{"},
            {"json": ""},
            {"json": nested(65)},
            {"json": {"maximum": 10**400}},
            {"json": json.dumps(nested(65))},
            {"json": 7},
            {"regex": "a\x00"},
            {"choice": []},
            {"choice": ["a"] * 1025},
            {"choice": "a"},
            {"grammar": ""},
            {"json_object": False},
            {"json": SCHEMA, "whitespace_pattern": "a"},
            {"json": SCHEMA, "_backend": "outlines"},
        ],
    ),
    "add_special_tokens": BOOLEAN,
    "skip_special_tokens": BOOLEAN,
    "spaces_between_special_tokens": BOOLEAN,
    "truncate_prompt_tokens": ([-1, 2**31 - 1, None], [-2, 2**31, 1.0]),
    "truncation_side": (["left", "right", None], ["middle", 1]),
    "stream": NULLABLE,
    "stream_options": (
        [{}, {"include_usage": True, "continuous_usage_stats": False}, None],
        [{"include_usage": 1}, {"a": True}, True],
    ),
    "stream_interval": ([1, 2**31 - 1, None], [0, 2**31, 1.5]),
    "session_id": (["", "a" * 128, None], ["a" * 129, 7, ["a"]]),
    "vllm_xargs": (
        [{}, {"session_id": "a"}, None],
        [{"headstart": "{}"}, {"kv_transfer_params": 1}, {"a": 1}, {"session_id": 7}, [1]],
    ),
    "cache_salt": (["a", "a" * 128, None], ["", "a" * 129, "a/b", "a@b", "a\x00", 7]),
    "headstart": (
        [{}, {"stream": "a" * 128, "preview": True, "timeline": False}, None],
        [{"stream": ""}, {"stream": "a" * 129}, {"preview": "yes"}, {"strem": "a"}, 1],
    ),
    **dict.fromkeys(
        (
            "user",
            "store",
            "metadata",
            "service_tier",
            "safety_identifier",
            "prompt_cache_key",
            "prompt_cache_retention",
        ),
        IGNORED,
    ),
}
CHATS: dict[str, tuple[list[Any], list[Any]]] = {
    **COMMON,
    "messages": (
        [
            [],
            [{"role": role, "content": "a"} for role in ("system", "developer", "user")],
            [{"role": "user", "content": [{"type": "text", "text": "a"}], "name": "a"}],
            [{"role": "assistant"}, {"role": "assistant", "content": None}],
            [{"role": "tool", "content": "a", "tool_call_id": "a"}],
            [{"role": "user", "content": "a"}] * 256,
        ],
        [
            "a",
            [7],
            [{}],
            [{"role": "user"}],
            [{"role": "user", "content": None}],
            [{"role": "user", "content": 7}],
            [{"role": "user", "content": ["a"]}],
            [{"role": "user", "content": "a", "name": "a" * 129}],
            [{"role": "user", "content": "a", "tool_calls": []}],
            [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}],
            [{"role": "tool", "content": "a"}],
            [{"role": "function", "content": "a"}],
            [{"role": "user", "content": "a", "task": "a"}],
            [{"role": "user", "content": "a"}] * 257,
        ],
    ),
    "max_completion_tokens": ([*COUNT[0], None], COUNT[1]),
    "logprobs": NULLABLE,
    "top_logprobs": ([0, 20, None], [-1, 21, 1.0, True]),
    "tools": ([[TOOL], [TOOL] * 128, None], [[], [TOOL] * 129, [{"type": "function"}], ["look"]]),
    "tool_choice": (["none", None], ["auto", "required", "always", {"function": {}}, 7]),
    "parallel_tool_calls": NULLABLE,
    "reasoning_effort": (["none", "max", None], ["most", 1]),
    "include_reasoning": BOOLEAN,
    "echo": BOOLEAN,
    "add_generation_prompt": BOOLEAN,
    "continue_final_message": BOOLEAN,
    "chat_template_kwargs": (
        [{}, {"enable_thinking": False}, None],
        [{"tokenize": False}, {"chat_template": "a"}, {"enable_thinking": 1}],
    ),
    "return_prompt_text": NULLABLE,
    "prediction": (
        [
            None,
            {"type": "content", "content": ""},
            {"type": "content", "content": [{"type": "text", "text": "a"}]},
        ],
        [
            7,
            "a",
            {"content": "a"},
            {"type": "text", "content": "a"},
            {"type": "content"},
            {"type": "content", "content": 7},
            {"type": "content", "content": ["a"]},
            {"type": "content", "content": [{"type": "text", "text": 7}]},
        ],
    ),
    "modalities": ([["text"], None], [["audio"], ["text", "audio"], "text"]),
    "verbosity": IGNORED,
}
COMPLETED: dict[str, tuple[list[Any], list[Any]]] = {
    **COMMON,
    "n": ([1, 8], [0, 9, "9", 9.0, True, None]),
    "prompt": (
        ["a", ["a"], [""], [0, 499], [[0], [499]], ["a"] * 256],
        [
            None,
            7,
            {},
            [],
            [[]],
            [500],
            [[500]],
            [-1],
            [1.0],
            [True],
            ["a", 1],
            [1, "a"],
            ["a"] * 257,
        ],
    ),
    "echo": NULLABLE,
    "logprobs": ([0, 20, None], [-1, 21, True, 1.0, "1"]),
}
TOKENIZED: dict[str, tuple[list[Any], list[Any]]] = {
    "model": COMMON["model"],
    "prompt": (["", "a"], [None, 7, ["a"], [1]]),
    "add_special_tokens": BOOLEAN,
    "return_token_strs": NULLABLE,
}
DETOKENIZED: dict[str, tuple[list[Any], list[Any]]] = {
    "model": COMMON["model"],
    "tokens": ([[], [0, 499]], [[500], [-1], [2**70], [1.0], ["1"], [True], None, "1"]),
}
TABLES = {CHAT: CHATS, COMPLETIONS: COMPLETED, TOKENIZE: TOKENIZED, DETOKENIZE: DETOKENIZED}
MODELS = {
    CHAT: ChatBody,
    COMPLETIONS: CompletionBody,
    TOKENIZE: routes.TokenizeTextBody,
    DETOKENIZE: routes.DetokenizeBody,
}
CASES = [(path, name) for path, table in TABLES.items() for name in table]


@pytest.mark.parametrize("path", TABLES)
def test_every_field_is_in_the_tables_above(path):
    assert set(TABLES[path]) == MODELS[path].names


@pytest.mark.parametrize(("path", "name"), CASES)
def test_a_field_is_accepted_to_the_ends_of_its_range(path, name):
    dropped = MODELS[path].model_fields[name].exclude or name in sampling.Sampling.ours
    for value in TABLES[path][name][0]:
        content = checked({**LEAST[path], name: value}, path)
        if dropped:
            assert name not in content
        else:
            assert content[name] == value, value


@pytest.mark.parametrize(("path", "name"), CASES)
def test_a_field_beyond_its_range_is_refused_by_name(path, name):
    for value in TABLES[path][name][1]:
        said = refusal({**LEAST[path], name: value}, path)
        assert name in said or "prompts" in said, (value, said)


@pytest.mark.parametrize("path", BODIES)
def test_the_schema_accepts_what_the_check_accepts(path):
    """Of every value in the tables, but for bounds that no schema can express."""
    validator = jsonschema.Draft202012Validator(BODIES[path].json_schema())
    validator.check_schema(validator.schema)
    table = TABLES[path]
    for name, (good, bad) in table.items():
        for value in good:
            validator.validate({**LEAST[path], name: value})
        for value in bad:
            body = {**LEAST[path], name: value}
            if not is_beyond_schemas(path, body, value):
                assert not validator.is_valid(body), body


def is_beyond_schemas(path: str, body: dict[str, Any], value: Any) -> bool:
    """Whether only the check can refuse a body: to a schema, 1.0 is a whole number."""
    try:
        read_body(path, json.dumps(body).encode())
    except RefusedError as error:
        beyond = ("deep", "JSON in a text", "exactly one", "64 bits", "have format", "needs tools")
        said = any(words in error.message for words in beyond)
        return said or any(isinstance(v, float) and v.is_integer() for v in _numbers(value))
    return True  # a bound of the operator's or of the served model


def _numbers(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return [value]


PARTS = [
    ({"type": "text", "text": "a"}, ["text"]),
    ({"type": "image_url", "image_url": {"url": "a"}}, ["image_url"]),
    ({"type": "video_url", "video_url": {"url": "a"}}, ["video_url"]),
    ({"type": "event_url", "event_url": {"url": "a", "start_us": 0, "stop_us": 9}}, ["event_url"]),
]


@pytest.mark.parametrize(("fields", "names"), PARTS)
def test_a_part_has_exactly_its_fields(fields, names):
    assert checked(part(**fields))["messages"][0]["content"] == [fields]
    for extra in ("text", "uuid", "image_url", "video_embeds", "min_pixels"):
        if extra not in names:
            assert extra in refusal(part(**{**fields, extra: "x" * 100_000}))
    for name in names:
        assert name in refusal(part(**{k: v for k, v in fields.items() if k != name}))
        assert name in refusal(part(**{**fields, name: 7}))


@pytest.mark.parametrize(
    "kind",
    ["audio_url", "input_audio", "image_pil", "image_embeds", "prompt_embeds", "thinking", "file"],
)
def test_other_parts_are_refused(kind):
    for fields in ({"type": kind, kind: {"url": "a"}}, {kind: None}, {"type": "text", kind: "a"}):
        assert "messages[0].content[0]" in refusal(part(**fields))


@pytest.mark.parametrize(
    "window",
    [
        {"start_us": 2**63},
        {"start_us": 1.0},
        {"stop_us": "9"},
        {"sensor": "big"},
        {"sensor": "640x480x3"},
        {"format": "exe"},
        {"path": "/"},
        {"url": ""},
    ],
    ids=str,
)
def test_an_invalid_window_of_events_is_refused(window):
    assert "event_url" in refusal(part(type="event_url", event_url={"url": "a", **window}))


def test_every_event_format_that_is_read_can_be_named():
    from headstart_events.readers.opening import SUFFIXES
    from headstart_server.bodies.messages import EventWindow

    choices = EventWindow.model_json_schema()["properties"]["format"]["anyOf"][0]["enum"]
    assert {f".{name}" for name in choices} == set(SUFFIXES)


def test_01_no_setting_of_the_processor_is_accepted():
    for path in BODIES:
        for name in ("mm_processor_kwargs", "media_io_kwargs"):
            said = refusal({**LEAST[path], name: {"crop_size": {"height": 28, "width": 28}}}, path)
            assert said.startswith(f"{name} is not taken from clients")


def test_the_number_of_answers_is_bounded():
    checked({"prompt": ["a"] * 32, "n": 8}, COMPLETIONS)
    assert "256 answers" in refusal({"prompt": ["a"] * 33, "n": 8}, COMPLETIONS)


def test_04_clips_are_counted():
    shown = [{"type": "image_url", "image_url": {"url": "a"}}] * 8
    checked({"messages": [{"role": "user", "content": shown}]})
    several = [{"role": "user", "content": shown}, {"role": "user", "content": shown[:1]}]
    assert "8 videos and pictures" in refusal({"messages": several})


def test_07_numbers_are_numbers():
    for count in ("16000", 16000.0, True, "1", 1.0):
        assert refusal({**LEAST[CHAT], "n": count}) == "n must be a whole number"
    assert refusal({**LEAST[CHAT], "temperature": True}) == "temperature must be a number"
    assert refusal({**LEAST[CHAT], "temperature": 3}) == "temperature must be at most 2"


def test_13_all_texts_together_are_bounded():
    limits = Limits(max_text_characters=1000)
    url = {"url": "data:video/mp4;base64," + "A" * 100_000}
    content = [{"type": "video_url", "video_url": url}, {"type": "text", "text": "a" * 800}]
    body = {"messages": [{"role": "user", "content": content}]}
    checked(body, limits=limits)
    for more in (
        {"tools": [{"type": "function", "function": {"name": "a", "description": "a" * 200}}]},
        {"stop": ["a" * 200]},
        {"structured_outputs": {"regex": "a" * 200}},
        {"allowed_token_ids": [1] * 200},
        {"logit_bias": {str(key): 1 for key in range(200)}},
    ):
        assert "1000 characters" in refusal({**body, **more}, limits=limits)
    ids = {"prompt": [[1] * 600, [1] * 600]}
    assert "1000 characters" in refusal(ids, COMPLETIONS, limits=limits)


def test_14_grammars_are_bounded_in_bytes():
    limits = Limits(max_grammar_bytes=1000)
    large = {"type": "object", "properties": {f"p{n}": {} for n in range(200)}}
    tool = {"type": "function", "function": {"name": "a", "parameters": large}}
    for more in (
        {"structured_outputs": {"json": large}},
        {"structured_outputs": {"json": json.dumps(large)}},
        {"structured_outputs": {"regex": "a" * 1000}},
        {"structured_outputs": {"choice": ["é" * 300]}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": large}}},
        {"response_format": {"type": "structural_tag", "format": large}},
        {"tools": [tool], "tool_choice": "required"},
        {"tools": [tool], "tool_choice": {"type": "function", "function": {"name": "a"}}},
    ):
        checked({**LEAST[CHAT], **more})
        assert "1000 bytes" in refusal({**LEAST[CHAT], **more}, limits=limits)


def constraint(**fields: Any) -> dict[str, Any] | None:
    return constraint_of(read_body(CHAT, json.dumps({**LEAST[CHAT], **fields}).encode()))


def test_the_constraint_of_an_answer_is_vllms():
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers.utils import get_json_schema_from_tools

    tag = {"type": "structural_tag", "format": {"type": "any_text"}}
    for fields in (
        {"response_format": {"type": "json_object"}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": SCHEMA},
            }
        },
        {"response_format": tag},
        {"structured_outputs": {"json": SCHEMA}},
        {"structured_outputs": {"choice": ["a", "b"]}},
    ):
        theirs = ChatCompletionRequest(**LEAST[CHAT], **fields).extract_structured_outputs()
        assert theirs is not None
        (name, value), *rest = (constraint(**fields) or {}).items()
        assert not rest
        told = getattr(theirs, name)
        assert (json.loads(told) if name == "structural_tag" else told) == (
            json.loads(value) if name == "structural_tag" else value
        )
    definitions = {"$ref": "#/$defs/b", "$defs": {"b": {"type": "object"}}}
    tools = [
        TOOL,
        {"type": "function", "function": {"name": "b", "parameters": definitions}},
        {"type": "function", "function": {"name": "c"}},
    ]
    for choice in ("required", {"type": "function", "function": {"name": "c"}}):
        for parallel in ({}, {"parallel_tool_calls": False}):
            fields = json.loads(json.dumps({"tools": tools, "tool_choice": choice, **parallel}))
            request = ChatCompletionRequest(**LEAST[CHAT], **fields)
            theirs = get_json_schema_from_tools(
                request.tool_choice, request.tools, request.parallel_tool_calls
            )
            assert constraint(**fields) == {"json": theirs}


def test_a_free_answer_has_no_constraint():
    for fields in (
        {},
        {"response_format": {"type": "text"}},
        {"tools": [TOOL]},
        {"tools": [TOOL], "tool_choice": "auto"},
        {"tools": [TOOL], "tool_choice": "none"},
    ):
        assert constraint(**fields) is None
    strict = {"type": "function", "function": {**TOOL["function"], "strict": True}}
    assert constraint(tools=[strict]) is not None, "vLLM compiles strict tools whatever is chosen"


def test_an_answer_has_one_constraint():
    both = {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}}
    assert "give one of" in refusal({**LEAST[CHAT], **both})
    forced = {"tools": [TOOL], "tool_choice": "required", "structured_outputs": {"regex": "a"}}
    assert "give one of" in refusal({**LEAST[CHAT], **forced})
    text = {"response_format": {"type": "text"}, "structured_outputs": {"regex": "a"}}
    assert constraint(**text) == {"regex": "a"}
    for banning in ({"allowed_token_ids": [1]}, {"bad_words": ["a"]}):
        assert "cannot go with" in refusal({**LEAST[CHAT], **banning, **text})
        assert "cannot go with" in refusal({"prompt": "a", **banning, **text}, COMPLETIONS)
        checked({**LEAST[CHAT], **banning, "response_format": {"type": "text"}})
    unknown = {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "x"}}}
    assert "names none of the tools" in refusal({**LEAST[CHAT], **unknown})


def test_fields_that_need_every_tokens_text_are_closed_where_some_have_none():
    for fields in (
        {"logprobs": True},
        {"top_logprobs": 0},
        {"prompt_logprobs": 0},
        {"logprob_token_ids": [1]},
        {"echo": True},
    ):
        checked({**LEAST[CHAT], **fields})
        assert "names" in refusal({**LEAST[CHAT], **fields}, names_all_tokens=False)
    checked({**LEAST[CHAT], "logprobs": False, "top_logprobs": None}, names_all_tokens=False)
    assert "names" in refusal({"prompt": "a", "logprobs": 0}, COMPLETIONS, names_all_tokens=False)


def test_a_seed_is_closed_where_it_crashes_the_engine():
    for fields in ({"seed": 7}, {"seed": 7, "temperature": 0.5}):
        checked({**LEAST[CHAT], **fields})
        assert "temperature to 0" in refusal({**LEAST[CHAT], **fields}, closes_seed=True)
    for fields in ({"seed": 7, "temperature": 0}, {"seed": None}, {"temperature": 1}):
        checked({**LEAST[CHAT], **fields}, closes_seed=True)


def test_tokenize_ignores_sampling_fields():
    body = {**LEAST[CHAT], "seed": 7, "logprobs": True, "n": 9}
    checked(body, TOKENIZE, closes_seed=True, names_all_tokens=False)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"messages": [], "user": "\\ud800"}', "not JSON"),
        (b'{"temperature": NaN, "messages": []}', "not JSON"),
        (b'{"messages": ' + b"[" * 100_000, "not JSON"),
        (b"[]", "must be an object"),
        (b"3", "must be an object"),
        (b"null", "must be an object"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_body_that_is_no_json_object_is_refused(body, said):
    for path in BODIES:
        with pytest.raises(RefusedError, match=said) as caught:
            read_body(path, body)
        assert caught.value.status == HTTPStatus.BAD_REQUEST


def test_a_number_that_is_not_finite_is_refused():
    said = b'{"messages": [], "temperature": 1e999}'
    with pytest.raises(RefusedError, match="temperature must be a finite number"):
        read_body(CHAT, said)
    free = b'{"messages": [], "structured_outputs": {"json": {"maximum": 1e999}}}'
    with pytest.raises(RefusedError, match=r"structured_outputs\.json holds a number"):
        read_body(CHAT, free)


def test_an_error_repeats_little_of_the_body():
    long = "x" * 5000
    for fields in (
        {long: 1},
        {"model": long},
        {"cache_salt": long},
        {"logit_bias": {long: 1}},
        {"tool_choice": long},
        {"headstart": {long: 1}},
        {"messages": [{"role": long}]},
    ):
        said = refusal({**LEAST[CHAT], **fields})
        assert "x" * 65 not in said
        assert len(said) < 300


@pytest.mark.parametrize(
    "fields",
    [
        {f"field {number}": 1 for number in range(50_000)},
        {"logit_bias": {f"key {number}": 1 for number in range(50_000)}},
        {"allowed_token_ids": ["a"] * 50_000},
        {"messages": [{}] * 50_000},
        {"messages": [{"role": "user", "content": [{}] * 50_000}]},
        {"tools": [{}] * 50_000},
        {"stop": [""] * 50_000},
        {"bad_words": [7] * 50_000},
        {"structured_outputs": {"choice": [7] * 50_000}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_many_wrong_values_cost_no_more_than_one(fields):
    with pytest.raises(RefusedError) as caught:
        read_body(CHAT, json.dumps({**LEAST[CHAT], **fields}).encode())
    cause = caught.value.__cause__
    assert isinstance(cause, ValidationError)
    assert cause.error_count() == 1


def test_a_body_of_a_million_values_is_not_parsed():
    body = b'{"messages": [' + b"[]," * 1_000_000 + b"[]]}"
    with pytest.raises(RefusedError, match="values at most"):
        read_body(CHAT, body)


def vllm_models() -> dict[str, list[tuple[Any, type[Body]]]]:
    """vLLM's models of what a client sends, each beside ours."""
    from vllm.entrypoints.generate.base import protocol
    from vllm.entrypoints.openai.chat_completion import protocol as chat
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.serve.tokenize import protocol as tokenize
    from vllm.sampling_params import RepetitionDetectionParams, StructuredOutputsParams

    return {
        "routes": [
            (chat.ChatCompletionRequest, ChatBody),
            (CompletionRequest, CompletionBody),
            (tokenize.TokenizeChatRequest, routes.TokenizeChatBody),
            (tokenize.TokenizeCompletionRequest, routes.TokenizeTextBody),
            (tokenize.DetokenizeRequest, routes.DetokenizeBody),
        ],
        "inside": [
            (protocol.StreamOptions, sampling.StreamOptions),
            (protocol.JsonSchemaResponseFormat, grammars.Schema),
            (protocol.LegacyStructuralTag, grammars.Structure),
            (protocol.FunctionDefinition, grammars.Function),
            (chat.ChatCompletionToolsParam, grammars.Tool),
            (chat.ChatCompletionNamedToolChoiceParam, grammars.ChosenTool),
            (StructuredOutputsParams, grammars.StructuredOutputs),
            (RepetitionDetectionParams, sampling.RepetitionDetection),
        ],
    }


def field_names(model: Any) -> set[str]:
    if hasattr(model, "model_fields"):
        return {field.alias or name for name, field in model.model_fields.items()}
    return {name for name in model.__dataclass_fields__ if not name.startswith("_")}


@pytest.mark.parametrize("place", ["routes", "inside"])
def test_every_field_that_vllm_knows_is_decided(place):
    for theirs, ours in vllm_models()[place]:
        undecided = field_names(theirs) - ours.names - set(CLOSED)
        assert not undecided, f"{theirs.__name__}: decide on {sorted(undecided)}"


def test_every_part_and_message_that_vllm_knows_is_decided():
    from vllm.renderers import chat_utils

    parts = get_args(chat_utils.ChatCompletionContentPartParam)
    names = {name for kind in parts for name in getattr(kind, "__annotations__", ())}
    ours = {
        kind.model_fields["type"].annotation.__args__[0]: kind
        for kind in (
            messages.TextPart,
            messages.ImagePart,
            messages.VideoPart,
            messages.EventsPart,
        )
    }
    for name in names - set(ours) - {"type"}:
        assert "messages[0].content[0]" in refusal(part(type=name, **{name: "a"}))
        assert name in refusal(part(type="text", text="a", **{name: "a"}))
    said = set(chat_utils.CustomChatCompletionMessageParam.__annotations__)
    assistant = messages.AssistantMessage.names | messages.ToolMessage.names
    assert said - assistant <= set(CLOSED)


@pytest.mark.parametrize("place", range(5))
def test_vllm_reads_what_is_taken(place):
    """No field has a value, null among them, that vLLM's own model refuses for itself."""
    theirs, ours = vllm_models()["routes"][place]
    path = (CHAT, COMPLETIONS, CHAT, TOKENIZE, DETOKENIZE)[place]
    needed = {
        "stream_options": {"stream": True},
        "top_logprobs": {"logprobs": True},
        "logprob_token_ids": {"logprobs": True if path == CHAT else 1},
    }
    for name, (good, _) in TABLES[path].items():
        for value in good:
            if name == "response_format" and value and value["type"] == "structural_tag":
                continue  # vLLM compiles it at once
            content = checked({**LEAST[path], **needed.get(name, {}), name: value}, path)
            theirs(**content)
    assert ours.names


def test_an_answer_can_be_sent_back_as_a_message():
    from vllm.entrypoints.openai.chat_completion import protocol

    empty = ("name", "refusal", "annotations", "audio", "function_call", "tool_calls", "reasoning")
    message = {"role": "assistant", "content": "a", **dict.fromkeys(empty)}
    content = checked({"messages": [message]})
    assert content == {"messages": [{"role": "assistant", "content": "a"}]}
    assert protocol.ChatCompletionRequest(**content)


def test_a_closed_field_is_in_no_body_of_its_route():
    for name in CLOSED:
        for path, model in MODELS.items():
            if name not in model.names:
                assert refusal({**LEAST[path], name: 1}, path).startswith(f"{name} is not taken")


def test_tokenize_takes_a_chats_body_and_uses_what_its_tokens_depend_on():
    body = {**LEAST[CHAT], "model": "target", "temperature": 0, "max_tokens": 3, "stream": True}
    content = checked({**body, "return_token_strs": True}, TOKENIZE)
    assert content == {**LEAST[CHAT], "model": "target", "return_token_strs": True}
    assert refusal({**body, "temperature": 3}, TOKENIZE) == "temperature must be at most 2"


def application() -> Any:
    """vLLM's routes as FastAPI describes them, without vLLM's server."""
    from fastapi import FastAPI
    from vllm.entrypoints.openai.chat_completion import protocol as chat
    from vllm.entrypoints.serve.tokenize import protocol as tokenize

    app = FastAPI()

    @app.post(CHAT)
    def ask(body: chat.ChatCompletionRequest) -> chat.ChatCompletionResponse:
        raise NotImplementedError

    @app.post(TOKENIZE)
    def count(body: tokenize.TokenizeRequest) -> tokenize.TokenizeResponse:
        raise NotImplementedError

    @app.post("/sleep")
    def sleep(body: chat.BatchChatCompletionRequest) -> None:
        raise NotImplementedError

    return app


def test_the_schema_served_is_of_the_bodies_accepted():
    served = openapi_schema(application().openapi())
    assert "/sleep" not in served["paths"]
    assert not [name for name in served["components"]["schemas"] if name.endswith("Request")]
    for path in (CHAT, TOKENIZE):
        operation = served["paths"][path]["post"]
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        # References stand in the served document as they do in the models' own.
        inlined = json.dumps(resolved(body, served))
        own = BODIES[path].json_schema(ref_template="#/$defs/{model}")
        assert inlined == json.dumps(resolved(own, own))
        assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]


def resolved(schema: Any, document: dict[str, Any]) -> Any:
    """The same without references and descriptions of where they lead."""
    if isinstance(schema, list):
        return [resolved(item, document) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        found: Any = document
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
        return resolved(found, document)
    return {name: resolved(item, document) for name, item in schema.items() if name != "$defs"}


@pytest.mark.parametrize("path", BODIES)
def test_the_fuzz_makes_valid_bodies_of_every_field(path):
    maker, seen = RequestMaker(seed=7, vocabulary=VOCABULARY), set()
    for _ in range(600):
        body = maker.ours(path)
        seen |= body.keys()
        checked(body, path)
    assert seen >= MODELS[path].names - {"max_completion_tokens"}
    theirs = [maker.vllms(path) for _ in range(600)]
    known = {name for model, _ in vllm_models()["routes"] for name in field_names(model)}
    assert {name for body in theirs for name in body} <= known
    again = RequestMaker(seed=7, vocabulary=VOCABULARY)
    assert again.ours(path) == RequestMaker(seed=7, vocabulary=VOCABULARY).ours(path)
