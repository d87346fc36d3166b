"""What a request may name, and what vLLM is handed of it."""

import asyncio
import base64
import json
from http import HTTPStatus

import pytest

from headstart.drafters.port import StreamKey
from headstart.engine.asking import AskDetails
from headstart.serve.chat import Reading
from headstart.serve.fetching import EventPart, Fetching, MediaPart
from headstart.serve.guard import CHAT, COMPLETIONS
from headstart.serve.library import Library
from headstart.serve.passage import Passage
from headstart.serve.prediction import Spelling
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits, Settings

VOCABULARY = 320
QUESTION = [{"role": "user", "content": "What?"}]


@pytest.fixture(scope="session")
def spelling():
    from headstart.lab.tokenizer import train_tokenizer

    return Spelling(train_tokenizer(["The road is wide and wet."], VOCABULARY))


@pytest.fixture(scope="session")
def reading(spelling):
    return Reading(Limits(), spelling, VOCABULARY)


def read(reading, tenant="north", path=CHAT, header="", **content):
    if path == CHAT:
        content = {"messages": QUESTION, **content}
    return reading.read(json.dumps(content).encode(), tenant, path, header)


def refused(call, *arguments, **named) -> HTTPStatus:
    with pytest.raises(RefusedError) as caught:
        call(*arguments, **named)
    return caught.value.status


def asking(*parts) -> list[dict]:
    return [{"role": "user", "content": [*parts, {"type": "text", "text": "What?"}]}]


EVENTS = {"type": "event_url", "event_url": {"url": "events-1", "start_us": 1, "stop_us": 5}}
VIDEO = {"type": "video_url", "video_url": {"url": "http://example.org/a.mp4"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}


def test_what_is_ours_does_not_reach_vllm_and_what_is_vllms_does(reading):
    messages = asking(EVENTS)
    asked = read(reading, messages=messages, seed=7, headstart={"stream": "s", "preview": True})
    assert asked.details == AskDetails(stream="s", tenant="north", question="What?")
    assert asked.events == EventPart("events-1", 1, 5, None, "")
    handed = json.loads(asked.told(asked.details, "ask-1"))
    assert handed["seed"] == 7
    assert handed["messages"][0]["content"] == [{"type": "text", "text": "What?"}]
    assert "headstart" not in handed
    told = AskDetails.parse(handed["vllm_xargs"])
    assert (told.ask, told.preview, told.stream, told.tenant) == ("ask-1", True, "s", "north")


def test_without_wishes_the_drafters_are_told_nothing(reading):
    body = {"messages": QUESTION, "temperature": 0, "cache_salt": "mine"}
    asked = read(reading, tenant="", **body)
    assert asked.details is None
    assert json.loads(asked.plain()) == body


def test_media_are_named_where_they_stand(reading):
    asked = read(reading, messages=asking(VIDEO, EVENTS, PICTURE))
    content = asked.content["messages"][0]["content"]
    assert [part["type"] for part in content] == ["video_url", "image_url", "text"]
    assert asked.media == (
        MediaPart("video", "http://example.org/a.mp4", content[0]),
        MediaPart("image", "data:image/png;base64,AA", content[1]),
    )
    # Whoever fetches them says so in the request itself.
    for number, media in enumerate(asked.media):
        media.part[f"{media.kind}_url"] = {"url": f"held:{number}"}
        media.part["uuid"] = f"name-{number}"
    for body in (asked.plain(), asked.told(AskDetails(), "ask-1")):
        video, picture, _ = json.loads(body)["messages"][0]["content"]
        assert video == {"type": "video_url", "video_url": {"url": "held:0"}, "uuid": "name-0"}
        assert picture == {"type": "image_url", "image_url": {"url": "held:1"}, "uuid": "name-1"}


def test_one_window_of_events_is_enough(reading):
    assert refused(read, reading, messages=asking(EVENTS, EVENTS)) == HTTPStatus.BAD_REQUEST


def test_a_prediction_becomes_a_draft_and_does_not_reach_vllm(reading, spelling):
    prediction = {"type": "content", "content": "The road is wet"}
    asked = read(reading, prediction=prediction, n=1)
    assert asked.prediction == spelling.tokens("The road is wet", is_structured=False)
    assert asked.wishes is None
    handed = json.loads(asked.told(asked.details, "ask-1"))
    assert "prediction" not in handed
    told = AskDetails.parse(handed["vllm_xargs"])
    assert told.draft == asked.prediction
    assert told.stream is None
    parts = [{"type": "text", "text": "The road"}, {"type": "text", "text": " is wet"}]
    in_parts = read(reading, prediction={"type": "content", "content": parts})
    assert in_parts.prediction == asked.prediction
    free = read(reading, prediction=prediction, response_format={"type": "text"})
    assert free.prediction == asked.prediction
    for grammar in (
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"regex": "a"}},
    ):
        bound = read(reading, prediction=prediction, **grammar)
        assert bound.prediction == spelling.tokens("The road is wet", is_structured=True)
        assert bound.prediction != asked.prediction


def test_a_prediction_is_for_one_answer_of_a_chat(reading):
    prediction = {"type": "content", "content": "The road"}
    with pytest.raises(RefusedError, match="leave n out"):
        read(reading, prediction=prediction, n=2)
    with pytest.raises(RefusedError, match="prediction is not a field"):
        read(reading, path=COMPLETIONS, prompt="a", prediction=prediction)


def test_no_prediction_and_an_empty_one_are_told_apart(reading):
    assert read(reading, prediction=None).prediction is None
    empty = read(reading, prediction={"type": "content", "content": ""})
    assert empty.prediction == ()


def test_a_session_names_the_stream(reading):
    def stream(header="", path=CHAT, **content):
        given = {"prompt": "a"} if path != CHAT else {}
        details = read(reading, path=path, header=header, **given, **content).details
        return None if details is None else details.stream_key

    assert stream("s") == StreamKey("north", "s")
    assert stream("s", COMPLETIONS) == StreamKey("north", "s")
    assert stream("s", "/tokenize") is None
    assert stream("header", session_id="body") == StreamKey("north", "body")
    assert stream("header", vllm_xargs={"session_id": "x"}) == StreamKey("north", "header")
    assert stream(vllm_xargs={"session_id": "x"}) == StreamKey("north", "x")
    ours = {"headstart": {"stream": "ours"}}
    assert stream("header", session_id="body", **ours) == StreamKey("north", "ours")
    assert stream("header", headstart={}) == StreamKey("north", "header")
    for nothing in ("", None):
        assert stream(session_id=nothing) is None
    with pytest.raises(RefusedError, match="X-Session-ID must have 1 to 128"):
        stream("s" * 129)


def test_a_session_still_reaches_vllm(reading):
    """Wherever it is named: no header of the client's goes on."""
    for given in (
        {"session_id": "s"},
        {"header": "s"},
        {"vllm_xargs": {"session_id": "s"}},
        {"session_id": "s", "header": "another"},
    ):
        asked = read(reading, tenant="", **given)
        assert json.loads(asked.plain())["session_id"] == "s"
        assert asked.wishes is None


def test_a_completions_prompt_is_its_question(reading):
    asked = reading.read(b'{"prompt": "Once", "session_id": "s"}', "", COMPLETIONS)
    assert asked.details == AskDetails(stream="s", question="Once")


def test_a_tenant_cannot_pass_for_another(reading):
    content = {"cache_salt": "x", "headstart": {}}
    north, south = (read(reading, tenant=t, **content).content for t in ("north", "south"))
    assert north["cache_salt"] != south["cache_salt"]
    assert north["cache_salt"] != "x"
    assert read(reading, tenant="north", **content).content == north
    assert read(reading, tenant="north").content["cache_salt"] != north["cache_salt"]
    for spoof in (
        {"vllm_xargs": {"headstart": '{"tenant": "south"}'}},
        {"kv_transfer_params": {}},
        {"headstart": {"tenant": "south"}},
    ):
        assert refused(read, reading, **spoof) == HTTPStatus.BAD_REQUEST


def test_to_count_tokens_nothing_is_drafted(reading):
    asked = read(reading, path="/tokenize", messages=asking(VIDEO, EVENTS), headstart={})
    assert (asked.details, asked.events is None, asked.wishes) == (None, True, None)
    assert len(asked.media) == 1
    assert asked.content.keys() == {"messages"}


def test_what_binds_the_answer_is_told_once(reading):
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    asked = read(reading, structured_outputs={"json": schema})
    assert json.loads(asked.grammar) == {"json": schema}
    assert asked.grammar.index('"b"') < asked.grammar.index('"a"'), "the order counts"
    assert read(reading).grammar is None


def test_drafts_are_as_long_as_the_answer(reading):
    assert read(reading).max_tokens == 256
    assert read(reading, max_tokens=7).max_tokens == 7
    assert read(reading, max_tokens=7, max_completion_tokens=9).max_tokens == 9
    assert read(reading, max_tokens=100_000).max_tokens == 256


def test_what_the_served_model_cannot_do_is_refused(spelling):
    closed = Reading(Limits(), spelling, 100, names_all_tokens=False, closes_seed=True)
    for field in ({"logprobs": True}, {"seed": 7}, {"allowed_token_ids": [100]}):
        assert refused(read, closed, **field) == HTTPStatus.BAD_REQUEST
        assert read(Reading(Limits(), spelling, VOCABULARY), **field).content
    assert read(closed, seed=7, temperature=0, allowed_token_ids=[99]).content


def onward(*headers: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    passage = Passage({"headers": list(headers)}, None, None, lambda: False, request_id="ours")
    scope, receive = passage.onward(b"{}")
    assert asyncio.run(receive())["body"] == b"{}"
    return dict(scope["headers"])


def test_11_of_a_clients_headers_few_reach_vllm():
    steering = (b"X-Vllm-Priority", b"X-data-parallel-rank", b"X-Session-ID", b"X-Anything")
    more = (b"endpoint-load-metrics-format", b"transfer-encoding", b"cookie", b"expect")
    sent = [(name, b"1") for name in (*steering, *more, b"X-Request-Id", b"Host")]
    sent += [(b"Content-Length", b"999"), (b"Content-Type", b"application/json")]
    sent += [(b"traceparent", b"00-a-b-01")]
    assert onward(*sent) == {
        b"Content-Type": b"application/json",
        b"traceparent": b"00-a-b-01",
        b"host": b"localhost",
        b"content-length": b"2",
        b"x-request-id": b"ours",
    }


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "open").mkdir()
    return Settings(media_root=(tmp_path / "open").resolve(), media_domains=("example.invalid",))


@pytest.fixture
def fetching(settings):
    library = Library(settings.limits)
    yield Fetching(settings, library)
    library.close()


def fetched(fetching, url: str) -> bytes:
    return asyncio.run(fetching.media(url)).content


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://example.invalid/a.mp4", 400),  # open, but nobody is there
        ("http://example.invalid.evil.net/a.mp4", 403),
        ("http://example.invalid@evil.net/a.mp4", 400),
        ("http://evil.net\\@example.invalid/a.mp4", 400),
        ("http://example.invalid\t.evil.net/a.mp4", 400),
        ("http://127.0.0.1/", 403),
        ("http://[::1]/", 403),
        ("http://0/", 403),
        ("HTTP://EVIL.NET/", 403),
        (" http://evil.net/", 400),
        ("http://[bad/", 400),
        ("/etc/passwd", 400),
        ("data:,", 400),
        ("data:video/mp4,AAAA", 400),
        ("data:video/mp4;base64,!", 400),
    ],
)
def test_addresses(fetching, url, status):
    assert refused(fetched, fetching, url) == status


def test_content_in_the_address_is_that_content(fetching):
    encoded = base64.b64encode(b"anything").decode()
    assert fetched(fetching, f"data:video/mp4;base64,{encoded}") == b"anything"


def test_files_are_read_below_the_root_only(fetching, settings, tmp_path):
    root = settings.media_root
    (root / "in.mp4").write_bytes(b"x")
    (tmp_path / "out.mp4").write_bytes(b"x")
    (root / "link.mp4").symlink_to(tmp_path / "out.mp4")
    assert fetched(fetching, f"file://{root}/in.mp4") == b"x"
    for path in ("../out.mp4", "%2e%2e/out.mp4", "link.mp4", "none.mp4", ".", "in.mp4/x", "%00"):
        assert refused(fetched, fetching, f"file://{root}/{path}") == 404, path
