"""Answers that follow a JSON schema: the same with drafts, and a bad schema costs one question."""

import asyncio
import json
import re

import pytest
from rich.console import Console

from headstart import Answer, Confirmed, Video
from headstart.cli.ask import _show, read_schema
from headstart.engine.question import schema_text
from headstart.errors import SchemaError
from headstart.media.clip import ClipFiles
from headstart_lab.street import street_video
from tests.models.oracle import random_asked

MAX_TOKENS = 96
THINGS = "(a red car|a bus|two people|nobody)"
# A text, for between the parts of an object an untrained target says blanks and nothing else.
SCHEMA = {"type": "string", "pattern": f"^{THINGS}, {THINGS} and {THINGS}$"}
QUESTION = "Who is there?"


@pytest.fixture
def video(rng) -> Video:
    (asked,) = random_asked(rng, 1)
    return Video.from_frames(asked.frames, fps=8)


@pytest.mark.engine
def test_the_answer_follows_its_schema_and_drafts_change_no_token_of_it(headstart, rng):
    session = headstart.session("camera", "schema")
    for asked in random_asked(rng, 4):
        video = Video.from_frames(asked.frames, fps=8)
        # Outside a session nobody drafts.
        alone = headstart.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=SCHEMA)
        assert alone.num_drafted_tokens == 0
        assert re.match(SCHEMA["pattern"], json.loads(alone.text))
        for _ in range(2):
            answer = session.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=SCHEMA)
            assert answer.token_ids == alone.token_ids
            assert answer.finish_reason == alone.finish_reason == "stop"
        assert answer.num_accepted_tokens > len(answer.token_ids) / 2


@pytest.mark.engine
def test_drafts_of_prose_do_not_bend_an_answer_that_must_be_json(headstart, video):
    session = headstart.session("camera", "prose first")
    prose = session.ask(video, QUESTION, max_tokens=MAX_TOKENS)
    alone = headstart.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=SCHEMA)
    assert prose.token_ids != alone.token_ids
    answer = session.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=SCHEMA)
    assert answer.token_ids == alone.token_ids


@pytest.mark.engine
def test_every_way_to_ask_takes_a_schema(headstart, video):
    asked = {"max_tokens": MAX_TOKENS, "schema": SCHEMA}
    session = headstart.session("camera", "ways")

    async def streamed(asker):
        return [event async for event in asker.stream(video, QUESTION, **asked)]

    expected = headstart.ask(video, QUESTION, **asked)
    for asker in (headstart, session):
        assert asyncio.run(asker.ask_async(video, QUESTION, **asked)).text == expected.text
        *shown, answer = asyncio.run(streamed(asker))
        assert isinstance(answer, Answer)
        assert answer.text == expected.text
        certain = [event.text for event in shown if isinstance(event, Confirmed)]
        assert "".join(certain) == expected.text


@pytest.mark.engine
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "nonsense"}, "cannot follow the schema.*nonsense.* Mend the schema"),
        ({"$ref": "#/nowhere"}, "cannot follow the schema.*nowhere"),
        ({"type": "string", "pattern": "("}, "cannot follow the schema"),
        # vLLM promises it, counting on a backend that this engine did not start.
        ({"type": "string", "pattern": r"\p{L}+"}, "could not compile the schema.*backend"),
    ],
)
def test_a_schema_vllm_cannot_follow_is_an_error_and_the_engine_goes_on(
    headstart, video, schema, said
):
    before = headstart.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=SCHEMA)
    with pytest.raises(SchemaError, match=said):
        headstart.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=schema)
    after = headstart.ask(video, QUESTION, max_tokens=MAX_TOKENS, schema=SCHEMA)
    assert after.token_ids == before.token_ids


@pytest.mark.engine
def test_the_command_shows_the_json_of_a_schema_in_a_file(headstart, tmp_path):
    file, street = tmp_path / "schema.json", tmp_path / "street.mp4"
    file.write_text(json.dumps(SCHEMA))
    street_video().write(street)
    console = Console(width=400, force_terminal=False)
    with console.capture() as capture:
        asyncio.run(
            _show(
                headstart,
                ClipFiles(video=street),
                QUESTION,
                MAX_TOKENS,
                read_schema(str(file)),
                console,
            )
        )
    assert re.match(SCHEMA["pattern"], json.loads(capture.get()))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "holds no JSON.*give a file with one JSON schema"),
        ("\xff", "holds no JSON"),
        ('["safe"]', "a schema is a JSON object, not list: give a mapping such as"),
        ("[" * 100_000, "holds no JSON"),
    ],
)
def test_a_file_without_a_schema_is_refused_before_an_engine_starts(tmp_path, content, said):
    file = tmp_path / "schema.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SchemaError, match=said):
        read_schema(str(file))


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_a_schema_that_is_not_json_is_refused(value):
    with pytest.raises(SchemaError, match="use plain objects, lists, texts, numbers"):
        schema_text({"default": value})


def test_a_schema_of_any_mapping_is_taken():
    from types import MappingProxyType

    assert json.loads(schema_text(MappingProxyType({"type": "boolean"}))) == {"type": "boolean"}
