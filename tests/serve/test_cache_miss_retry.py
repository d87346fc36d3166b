"""A failed request is retried once if nothing of an answer was sent."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from headstart.answers.preview import PreviewText
from headstart_server.asgi import Message
from headstart_server.response import Response
from rig.servers import CHAT, asking, chunks_of, content_of

JSON, STREAM = b"application/json", b"text/event-stream; charset=utf-8"
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
WORD = b'data: {"choices":[{"index":0,"delta":{"content":"Yes"}}]}\n\n'
FAILED = b'data: {"error": {"message": "Internal server error", "code": 500}}\n\n'


def response(status: int, kind: bytes, *bodies: bytes) -> list[Message]:
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", kind)],
    }
    parts = [
        {"type": "http.response.body", "body": body, "more_body": number < len(bodies) - 1}
        for number, body in enumerate(bodies)
    ]
    return [start, *parts]


def received(*attempts: list[Message]) -> tuple[list[int], bytes, list[bool]]:
    """What a client gets of these attempts, and after which of them a retry was wanted."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> list[bool]:
        retry, wanted = Response(send, "id", "model"), []
        for messages in attempts:
            for message in messages:
                await retry.send(message)
            wanted.append(retry.wants_retry)
        return wanted

    wanted = asyncio.run(run())
    statuses = [message["status"] for message in sent if message["type"].endswith("start")]
    return statuses, b"".join(message.get("body", b"") for message in sent), wanted


def test_a_response_that_succeeds_is_passed_on():
    assert received(response(200, JSON, b"{}")) == ([200], b"{}", [False])
    found = received(response(200, STREAM, ROLE, WORD, b"data: [DONE]\n\n"))
    assert found == ([200], ROLE + WORD + b"data: [DONE]\n\n", [False])
    assert received(response(400, JSON, b"no")) == ([400], b"no", [False])


def test_a_failure_before_the_first_token_is_retried():
    failed, fine = response(500, JSON, b"oh"), response(200, JSON, b"{}")
    assert received(failed, fine) == ([200], b"{}", [True, False])
    failed = response(200, STREAM, ROLE, FAILED, b"data: [DONE]\n\n")
    fine = response(200, STREAM, ROLE, WORD, b"data: [DONE]\n\n")
    assert received(failed, fine) == ([200], ROLE + WORD + b"data: [DONE]\n\n", [True, False])


def test_of_a_failed_attempt_nothing_is_shown_between_previews():
    """A response that is changed on its way begins as soon, with the same decision."""
    failed = response(200, STREAM, ROLE, FAILED, b"data: [DONE]\n\n")
    fine = response(200, STREAM, ROLE, WORD, b"data: [DONE]\n\n")
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        drafts = SimpleNamespace(screen=PreviewText())
        drafts.previews = lambda: drafts.screen.draft("Yes, a car", "memory")
        out = Response(send, "id", "model", drafts)
        for messages in (failed, fine):
            for message in messages:
                await out.send(message)
        await out.finish({"passes": 1})

    asyncio.run(run())
    assert [message["type"] for message in sent].count("http.response.start") == 1
    body = b"".join(message.get("body", b"") for message in sent)
    assert ROLE + WORD in body
    assert FAILED not in body
    told = [chunk["headstart"] for chunk in chunks_of(body.decode()) if "headstart" in chunk]
    assert told == [{"preview": "Yes, a car", "source": "memory"}, {"passes": 1}]
    assert body.endswith(b"data: [DONE]\n\n")


def test_there_is_one_retry():
    failed = response(500, JSON, b"oh")
    assert received(failed, failed) == ([500], b"oh", [True, False])
    failed = response(200, STREAM, ROLE, FAILED)
    assert received(failed, failed) == ([200], ROLE + FAILED, [True, False])


def test_a_failure_after_the_first_token_is_passed_on():
    assert received(response(200, STREAM, ROLE, WORD, FAILED)) == (
        [200],
        ROLE + WORD + FAILED,
        [False],
    )


@pytest.mark.engine
@pytest.mark.parametrize("stream", [False, True])
def test_a_picture_that_never_reached_the_engine_is_answered(north, tmp_path, stream):
    """vLLM 0.32 prepares a request's frames before it refuses it, and counts them as cached."""
    from headstart.media.video import Video
    from headstart_lab.street import street_video

    street = street_video(num_frames=16, width=96, height=64)
    shown = tmp_path / "shown.mp4"
    Video(street.frames // (8 + stream), street.times_us).write(shown)
    refused = north.post(CHAT, json=asking(shown, "What?", min_p=0.5, temperature=1))
    assert refused.status_code == 400
    assert "min_p" in refused.text
    reply = north.post(CHAT, json=asking(shown, "What?", stream=stream))
    assert reply.status_code == 200, reply.text
    text = content_of(chunks_of(reply.text)) if stream else json.loads(reply.text)["choices"]
    assert text
