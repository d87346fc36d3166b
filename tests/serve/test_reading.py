"""What a request may name, and what vLLM is handed of it."""

import base64
import io
import json
import zipfile
from http import HTTPStatus

import numpy as np
import pytest

from headstart.drafters.port import StreamKey
from headstart.engine.asking import AskDetails
from headstart.serve.chat import Reading
from headstart.serve.fetching import EventPart, Fetching
from headstart.serve.guard import CHAT, COMPLETIONS
from headstart.serve.library import Library
from headstart.serve.prediction import Spelling
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits, Settings


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "open").mkdir()
    return Settings(
        media_root=(tmp_path / "open").resolve(),
        media_domains=("example.org",),
        limits=Limits(max_events=1000, max_uploads=3, max_upload_bytes=100, max_window_us=10_000),
    )


@pytest.fixture
def library(settings):
    library = Library(settings.limits)
    yield library
    library.close()


@pytest.fixture
def fetching(settings, library):
    return Fetching(settings, library)


@pytest.fixture(scope="session")
def spelling():
    from headstart.lab.tokenizer import train_tokenizer

    return Spelling(train_tokenizer(["The road is wide and wet."], 320))


@pytest.fixture
def reading(fetching, settings, spelling):
    return Reading(fetching, settings.limits, spelling)


def read(reading, tenant="north", **content):
    return reading.read(json.dumps(content).encode(), tenant)


def refused(call, *arguments, **named) -> HTTPStatus:
    with pytest.raises(RefusedError) as caught:
        call(*arguments, **named)
    return caught.value.status


def npz(num_events: int, **more) -> str:
    file = io.BytesIO()
    columns = {name: np.arange(num_events) % 8 for name in "xy"}
    columns |= {"t": np.arange(num_events), "p": np.arange(num_events) % 2}
    np.savez(file, **{**columns, "sensor": np.array([8, 8]), **more})
    return "data:;base64," + base64.b64encode(file.getvalue()).decode()


def test_what_is_ours_does_not_reach_vllm_and_what_is_vllms_does(reading):
    parts = [
        {"type": "text", "text": "What?"},
        {"type": "event_url", "event_url": {"url": npz(9), "start_us": 1, "stop_us": 5}},
    ]
    messages = [{"role": "user", "content": parts}]
    asked = read(reading, messages=messages, seed=7, headstart={"stream": "s", "preview": True})
    assert asked.details == AskDetails(stream="s", tenant="north", question="What?")
    assert asked.events == EventPart(npz(9), 1, 5, None, "")
    handed = json.loads(asked.told(asked.details, "ask-1"))
    assert handed["seed"] == 7
    assert handed["messages"][0]["content"] == [{"type": "text", "text": "What?"}]
    assert "headstart" not in handed
    told = AskDetails.parse(handed["vllm_xargs"])
    assert (told.ask, told.preview, told.stream, told.tenant) == ("ask-1", True, "s", "north")


def test_without_wishes_the_drafters_are_told_nothing(reading):
    asked = read(reading, tenant="", messages=[], vllm_xargs={"a": 1}, cache_salt="mine")
    assert asked.details is None
    assert json.loads(asked.body) == {"messages": [], "vllm_xargs": {"a": 1}, "cache_salt": "mine"}


def test_a_prediction_becomes_a_draft_and_does_not_reach_vllm(reading, spelling):
    prediction = {"type": "content", "content": "The road is wet"}
    asked = read(reading, messages=[], prediction=prediction, n=1)
    assert asked.prediction == spelling.tokens("The road is wet", is_structured=False)
    assert asked.wishes is None
    handed = json.loads(asked.told(asked.details, "ask-1"))
    assert "prediction" not in handed
    told = AskDetails.parse(handed["vllm_xargs"])
    assert told.draft == asked.prediction
    assert told.stream is None
    free = read(reading, messages=[], prediction=prediction, response_format={"type": "text"})
    assert free.prediction == asked.prediction
    for grammar in ({"response_format": {"type": "json_object"}}, {"structured_outputs": {}}):
        bound = read(reading, messages=[], prediction=prediction, **grammar)
        assert bound.prediction == spelling.tokens("The road is wet", is_structured=True)
        assert bound.prediction != asked.prediction


def test_what_is_wrong_with_a_prediction_is_named(reading):
    for prediction, named in (
        (7, "prediction must be an object"),
        ({"type": "content"}, "prediction.content must be"),
        ({"type": "content", "content": [7]}, "each part of prediction.content"),
    ):
        with pytest.raises(RefusedError, match=named):
            read(reading, prediction=prediction)


def test_a_prediction_is_of_chat_completions_only(reading):
    body = json.dumps({"prompt": "a", "prediction": "anything"}).encode()
    asked = reading.read(body, "", COMPLETIONS)
    assert (asked.details, asked.prediction) == (None, None)


def test_no_prediction_and_an_empty_one_are_told_apart(reading):
    assert read(reading, prediction=None).prediction is None
    empty = read(reading, prediction={"type": "content", "content": ""})
    assert empty.prediction == ()


def test_a_session_names_the_stream(reading):
    def stream(header="", path=CHAT, **content):
        details = reading.read(json.dumps(content).encode(), "north", path, header).details
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
    # Nothing, and what vLLM itself refuses.
    for nothing in ("", None, 7, ["s"]):
        assert stream(session_id=nothing) is None
    with pytest.raises(RefusedError, match="X-Session-ID must have 1 to 128"):
        stream("s" * 129)


def test_a_session_still_reaches_vllm(reading):
    asked = read(reading, tenant="", messages=[], session_id="s")
    assert json.loads(asked.body) == {"messages": [], "session_id": "s"}
    assert asked.wishes is None


def test_a_completions_prompt_is_its_question(reading):
    asked = reading.read(b'{"prompt": "Once", "session_id": "s"}', "", COMPLETIONS)
    assert asked.details == AskDetails(stream="s", question="Once")


def test_a_tenant_cannot_pass_for_another(reading):
    spoof = {"headstart": '{"tenant": "south"}', "kv_transfer_params": 1}
    content = {"cache_salt": "x", "vllm_xargs": spoof, "kv_transfer_params": {}, "messages": []}
    north, south = (json.loads(read(reading, tenant=t, **content).body) for t in ("north", "south"))
    assert north["cache_salt"] != south["cache_salt"]
    assert north["cache_salt"] != "x"
    assert north["vllm_xargs"] == {}
    assert "kv_transfer_params" not in north
    again = json.loads(read(reading, tenant="north", **content).body)
    assert again["cache_salt"] == north["cache_salt"]


def test_the_same_picture_has_another_name_for_each_tenant(reading):
    part = {"type": "image_url", "image_url": {"url": "http://example.org/a.png"}, "uuid": "x"}
    messages = [{"role": "user", "content": [part]}]

    def name(tenant):
        body = json.loads(read(reading, tenant=tenant, messages=messages).body)
        return body["messages"][0]["content"][0]["uuid"]

    assert name("north") == name("north")
    assert len({name("north"), name("south"), "x"}) == 3


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b"null"])
def test_what_is_not_ours_to_understand_goes_on_as_it_is(reading, body):
    assert reading.read(body, "north").body == body


@pytest.mark.parametrize(
    "content",
    [
        {"headstart": 1},
        {"headstart": {"strem": "x"}},
        {"headstart": {"stream": ""}},
        {"headstart": {"stream": "x" * 129}},
        {"headstart": {"preview": "yes"}},
        {"session_id": "x" * 129},
        {"vllm_xargs": {"session_id": "x" * 129}},
        {"prediction": "The road"},
        {"prediction": {"content": "The road"}},
        {"prediction": {"type": "text", "content": "The road"}},
        {"prediction": {"type": "content"}},
        {"prediction": {"type": "content", "content": 7}},
        {"prediction": {"type": "content", "content": ["The road"]}},
        {"prediction": {"type": "content", "content": [{"type": "image_url"}]}},
        {"prediction": {"type": "content", "content": [{"type": "text", "text": 7}]}},
        {"prediction": {"type": "content", "content": "The road"}, "n": 2},
        {"n": 9},
        {"temperature": float("nan")},
        {"vllm_xargs": [1]},
        {"user": "\ud800"},
        {"messages": [{}] * 257},
        {"messages": [{"content": [{"type": "event_url"}]}]},
        {"messages": [{"content": [{"type": "event_url", "event_url": {"url": 3}}]}]},
        {"messages": [{"content": [{"event_url": {"url": "x", "path": "/"}}]}]},
        {"messages": [{"content": [{"event_url": {"url": "x", "sensor": "big"}}]}]},
        {"messages": [{"content": [{"event_url": "x"}, {"event_url": "y"}]}]},
        {"messages": [{"content": [{"type": "image_embeds", "image_embeds": "x"}]}]},
        {"messages": [{"content": [{"image_url": "gopher://x"}]}]},
        {"messages": [{"content": [{"deep": [{"er": {"url": "gopher://x"}}]}]}]},
        {"messages": [{"content": [{"video_url": {"url": 7}}]}]},
    ],
    ids=str,
)
def test_what_a_client_can_mend_is_a_400(reading, content):
    assert refused(read, reading, **content) == HTTPStatus.BAD_REQUEST


def test_tokens_without_a_name_are_not_asked_for(fetching, settings, spelling):
    padded = Reading(fetching, settings.limits, spelling, names_all_tokens=False)
    for field in ({"logprobs": True}, {"logprobs": 0}, {"top_logprobs": 1}, {"use_beam_search": 1}):
        assert refused(read, padded, **field) == HTTPStatus.BAD_REQUEST
        assert read(Reading(fetching, settings.limits, spelling), **field).content is not None
    assert read(padded, logprobs=False, top_logprobs=None).content is not None


def test_nesting_is_no_way_in(reading):
    body = b'{"messages": ' + b"[" * 200_000
    assert refused(reading.read, body, "") == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://example.org/a.mp4", None),
        ("https://example.org/a.mp4", None),
        ("http://example.org.evil.net/a.mp4", 403),
        ("http://example.org@evil.net/a.mp4", 400),
        ("http://evil.net\\@example.org/a.mp4", 400),
        ("http://example.org\t.evil.net/a.mp4", 400),
        ("http://127.0.0.1/", 403),
        ("http://[::1]/", 403),
        ("http://0/", 403),
        ("HTTP://EVIL.NET/", 403),
        (" http://evil.net/", 400),
        ("http://[bad/", 400),
        ("", 400),
        ("/etc/passwd", 400),
        ("data:video/mp4;base64,AAAA", 400),
        ("data:,", 400),
        ("data:video/mp4,AAAA", 400),
    ],
)
def test_addresses(fetching, url, status):
    if status is None:
        fetching.check_address(url)
    else:
        assert refused(fetching.check_address, url) == status


def test_files_are_read_below_the_root_only(fetching, settings, tmp_path):
    root = settings.media_root
    (root / "in.mp4").write_bytes(b"x")
    (tmp_path / "out.mp4").write_bytes(b"x")
    (root / "link.mp4").symlink_to(tmp_path / "out.mp4")
    fetching.check_address(f"file://{root}/in.mp4")
    for path in ("../out.mp4", "%2e%2e/out.mp4", "link.mp4", "none.mp4", ".", "in.mp4/x", "%00"):
        assert refused(fetching.check_address, f"file://{root}/{path}") == 404, path


def test_a_video_larger_than_allowed_is_not_decoded(clips, library):
    content = base64.b64encode((clips / "street.mp4").read_bytes()).decode()
    url = f"data:video/mp4;base64,{content}"
    Fetching(Settings(), library).check_address(url)
    for limits in (Limits(max_frame_pixels=96 * 64 - 1), Limits(max_video_s=0.1)):
        small = Fetching(Settings(limits=limits), library)
        assert refused(small.check_address, url) == HTTPStatus.BAD_REQUEST


def events(fetching, url, **more):
    return fetching.events("north", EventPart.parse({"event_url": {"url": url, **more}}))


def test_bombs_of_events_are_bounded(fetching):
    assert len(events(fetching, npz(900))) == 900
    assert refused(events, fetching, npz(1001)) == 400
    assert refused(events, fetching, npz(9), start_us=0, stop_us=10_001) == 400
    assert refused(events, fetching, npz(9), start_us=5, stop_us=5) == 400
    assert refused(events, fetching, npz(9), start_us=-(2**70), stop_us=2**70) == 400
    assert refused(events, fetching, npz(9, sensor=np.array([60_000, 60_000]))) == 400
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x", "y", "t", "p"):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "<i8", "fortran_order": False, "shape": (10**9,)}
            )
            archive.writestr(f"{name}.npy", header.getvalue() + bytes(10**6))
    bomb = "data:;base64," + base64.b64encode(packed.getvalue()).decode()
    assert refused(events, fetching, bomb, sensor="8x8") == 400


def test_no_pickle_and_no_path_in_what_is_told(fetching, tmp_path):
    np.save(tmp_path / "e.npy", {"x": np.arange(3)}, allow_pickle=True)
    pickled = base64.b64encode((tmp_path / "e.npy").read_bytes()).decode()
    for content in (pickled, "AAAA", "UEsDBA=="):
        with pytest.raises(RefusedError) as caught:
            events(fetching, f"data:;base64,{content}")
        assert caught.value.status == HTTPStatus.BAD_REQUEST
        assert "/" not in caught.value.message.replace("n/a", "")


def test_uploads_are_apart_and_bounded(library):
    names = [library.add("north", b"x" * 30, "") for _ in range(4)]
    assert refused(library.find, "north", names[0]) == HTTPStatus.NOT_FOUND
    assert library.find("north", names[3]).read_bytes() == b"x" * 30
    assert refused(library.find, "south", names[3]) == HTTPStatus.NOT_FOUND
    assert library.num_bytes == 90
    library.add("south", b"y" * 100, "")
    assert library.num_bytes == 190
    assert refused(library.add, "north", b"x" * 101, "") == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    library.remove("north", names[3])
    assert refused(library.remove, "north", names[3]) == HTTPStatus.NOT_FOUND
