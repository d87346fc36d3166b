"""What a request may name, and what vLLM is handed of it."""

import asyncio
import base64
import json
from http import HTTPStatus

import pytest

from headstart.engine.request_tags import RequestTags
from headstart.speculation.drafter import StreamKey
from headstart_server.limits import Limits
from headstart_server.media.fetcher import EventPart, MediaFetcher, MediaPart
from headstart_server.parsed_request import BodyBounds, RequestParser
from headstart_server.prediction import Tokenizing
from headstart_server.refusal import RefusedError
from headstart_server.request_context import RequestContext
from headstart_server.routes import CHAT, COMPLETIONS
from headstart_server.settings import Settings
from headstart_server.uploads import Uploads

VOCABULARY = 320
QUESTION = [{"role": "user", "content": "What?"}]


@pytest.fixture(scope="session")
def spelling():
    from headstart_lab.tokenizer import train_tokenizer

    return Tokenizing(train_tokenizer(["The road is wide and wet."], VOCABULARY))


@pytest.fixture(scope="session")
def parser(spelling):
    return RequestParser(BodyBounds(Limits(), VOCABULARY), spelling)


def parse(parser, tenant="north", path=CHAT, header="", **content):
    if path == CHAT:
        content = {"messages": QUESTION, **content}
    return parser.parse(json.dumps(content).encode(), tenant, path, header)


def refused(call, *arguments, **named) -> HTTPStatus:
    with pytest.raises(RefusedError) as caught:
        call(*arguments, **named)
    return caught.value.status


def asking(*parts) -> list[dict]:
    return [{"role": "user", "content": [*parts, {"type": "text", "text": "What?"}]}]


EVENTS = {"type": "event_url", "event_url": {"url": "events-1", "start_us": 1, "stop_us": 5}}
VIDEO = {"type": "video_url", "video_url": {"url": "http://example.org/a.mp4"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}


def test_what_is_ours_does_not_reach_vllm_and_what_is_vllms_does(parser):
    messages = asking(EVENTS)
    asked = parse(parser, messages=messages, seed=7, headstart={"stream": "s", "preview": True})
    assert asked.question.tags("r") == RequestTags(
        StreamKey("north", "s"), "north", "What?", name="r", preview=True
    )
    assert asked.events == EventPart("events-1", 1, 5, None, "")
    handed = json.loads(asked.body(asked.question.tags("ask-1")))
    assert handed["seed"] == 7
    assert handed["messages"][0]["content"] == [{"type": "text", "text": "What?"}]
    assert "headstart" not in handed
    told = RequestTags.parse(handed["vllm_xargs"])
    assert told == asked.question.tags("ask-1")


def test_without_wishes_the_drafters_are_told_nothing(parser):
    body = {"messages": QUESTION, "temperature": 0, "cache_salt": "mine"}
    asked = parse(parser, tenant="", **body)
    assert asked.question.tags("r") is None
    assert json.loads(asked.body(None)) == body


def test_media_are_named_where_they_stand(parser):
    asked = parse(parser, messages=asking(VIDEO, EVENTS, PICTURE))
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
    for body in (asked.body(None), asked.body(RequestTags())):
        video, picture, _ = json.loads(body)["messages"][0]["content"]
        assert video == {"type": "video_url", "video_url": {"url": "held:0"}, "uuid": "name-0"}
        assert picture == {"type": "image_url", "image_url": {"url": "held:1"}, "uuid": "name-1"}


def test_one_window_of_events_is_enough(parser):
    assert refused(parse, parser, messages=asking(EVENTS, EVENTS)) == HTTPStatus.BAD_REQUEST


def test_a_prediction_becomes_a_draft_and_does_not_reach_vllm(parser, spelling):
    prediction = {"type": "content", "content": "The road is wet"}
    asked = parse(parser, prediction=prediction, n=1)
    assert asked.question.prediction == spelling.tokens("The road is wet", is_structured=False)
    assert asked.options is None
    handed = json.loads(asked.body(asked.question.tags("ask-1")))
    assert "prediction" not in handed
    told = RequestTags.parse(handed["vllm_xargs"])
    assert told.prediction == asked.question.prediction
    assert told.stream is None
    parts = [{"type": "text", "text": "The road"}, {"type": "text", "text": " is wet"}]
    in_parts = parse(parser, prediction={"type": "content", "content": parts})
    assert in_parts.question == asked.question
    free = parse(parser, prediction=prediction, response_format={"type": "text"})
    assert free.question == asked.question
    for grammar in (
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"regex": "a"}},
    ):
        bound = parse(parser, prediction=prediction, **grammar)
        assert bound.question.prediction == spelling.tokens("The road is wet", is_structured=True)
        assert bound.question.prediction != asked.question.prediction
        assert not bound.question.is_free


def test_a_prediction_is_for_one_answer_of_a_chat(parser):
    prediction = {"type": "content", "content": "The road"}
    with pytest.raises(RefusedError, match="leave n out"):
        parse(parser, prediction=prediction, n=2)
    with pytest.raises(RefusedError, match="prediction is not a field"):
        parse(parser, path=COMPLETIONS, prompt="a", prediction=prediction)


def test_no_prediction_and_an_empty_one_are_told_apart(parser):
    assert parse(parser, prediction=None).question.prediction is None
    empty = parse(parser, prediction={"type": "content", "content": ""})
    assert empty.question.prediction == ()


def test_a_session_names_the_stream(parser):
    def stream(header="", path=CHAT, **content):
        given = {"prompt": "a"} if path != CHAT else {}
        return parse(parser, path=path, header=header, **given, **content).question.stream

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


def test_a_session_still_reaches_vllm(parser):
    """Wherever it is named: no header of the client's goes on."""
    for given in (
        {"session_id": "s"},
        {"header": "s"},
        {"vllm_xargs": {"session_id": "s"}},
        {"session_id": "s", "header": "another"},
    ):
        asked = parse(parser, tenant="", **given)
        assert json.loads(asked.body(None))["session_id"] == "s"
        assert asked.options is None


def test_a_completions_prompt_is_its_question(parser):
    asked = parser.parse(b'{"prompt": "Once", "session_id": "s"}', "", COMPLETIONS)
    assert (asked.question.words, asked.question.stream) == ("Once", StreamKey("", "s"))


def test_a_tenant_cannot_pass_for_another(parser):
    content = {"cache_salt": "x", "headstart": {}}
    north, south = (parse(parser, tenant=t, **content).content for t in ("north", "south"))
    assert north["cache_salt"] != south["cache_salt"]
    assert north["cache_salt"] != "x"
    assert parse(parser, tenant="north", **content).content == north
    assert parse(parser, tenant="north").content["cache_salt"] != north["cache_salt"]
    for spoof in (
        {"vllm_xargs": {"headstart": '{"tenant": "south"}'}},
        {"kv_transfer_params": {}},
        {"headstart": {"tenant": "south"}},
    ):
        assert refused(parse, parser, **spoof) == HTTPStatus.BAD_REQUEST


def test_to_count_tokens_nothing_is_drafted(parser):
    asked = parse(parser, path="/tokenize", messages=asking(VIDEO, EVENTS), headstart={})
    assert not asked.question.is_drafted
    assert (asked.events, asked.options) == (None, None)
    assert len(asked.media) == 1
    assert asked.content.keys() == {"messages"}


def test_what_binds_the_answer_is_told_once(parser):
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    asked = parse(parser, structured_outputs={"json": schema})
    assert json.loads(asked.grammar) == {"json": schema}
    assert asked.grammar.index('"b"') < asked.grammar.index('"a"'), "the order counts"
    assert parse(parser).grammar is None


def test_drafts_are_as_long_as_the_answer(parser):
    assert parse(parser).question.max_tokens == 256
    assert parse(parser, max_tokens=7).question.max_tokens == 7
    assert parse(parser, max_tokens=7, max_completion_tokens=9).question.max_tokens == 9
    assert parse(parser, max_tokens=100_000).question.max_tokens == 256


def test_what_the_served_model_cannot_do_is_refused(spelling):
    bounds = BodyBounds(Limits(), 100, names_all_tokens=False, closes_seed=True)
    closed = RequestParser(bounds, spelling)
    for field in ({"logprobs": True}, {"seed": 7}, {"allowed_token_ids": [100]}):
        assert refused(parse, closed, **field) == HTTPStatus.BAD_REQUEST
        assert parse(RequestParser(BodyBounds(Limits(), VOCABULARY), spelling), **field).content
    assert parse(closed, seed=7, temperature=0, allowed_token_ids=[99]).content


def onward(*headers: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    context = RequestContext(
        {"headers": list(headers)}, None, None, lambda: False, request_id="ours"
    )
    scope, receive = context.onward(b"{}")
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
    uploads = Uploads(settings.limits)
    yield MediaFetcher(settings, uploads)
    uploads.close()


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


def test_who_brings_a_salt_of_its_own_is_not_logged(parser):
    assert not parse(parser, headstart={"stream": "s"}).question.is_private
    assert parse(parser, headstart={"stream": "s"}, cache_salt="x").question.is_private
