"""Readers of a camera's answers, without an engine: dead, stalled, replaced and revoked ones."""

import asyncio
import json
from http import HTTPStatus

import pytest

from headstart_client.wire import CloseCode
from headstart_server.live import answer_stream
from headstart_server.live.answer_buffer import MAX_KEPT, AnswerBuffer
from headstart_server.live.answer_stream import AnswerStream
from headstart_server.live.send_queue import MOST_WAITING, SendQueue
from headstart_server.refusal import RefusedError
from headstart_server.request_context import ClientDisconnectedError, RequestContext
from rig.waiting import until


class Listened:
    """In place of a camera: whoever listens to it."""

    stream = "front"

    def __init__(self) -> None:
        self.queue: SendQueue | None = None
        self.after: int | None = None

    def attach(self, queue: SendQueue, number: int) -> None:
        self.queue, self.after = queue, number

    def detach(self, queue: SendQueue) -> bool:
        self.queue = None
        return True


class Client:
    """An HTTP client that reads until it is told not to."""

    def __init__(self) -> None:
        self.read: list[bytes] = []
        self.headers: dict[bytes, bytes] = {}
        self.is_complete = False
        self.reads = asyncio.Event()
        self.reads.set()
        self.left = asyncio.Event()

    async def receive(self):
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.headers = dict(message["headers"])
        else:
            self.read.append(message["body"])
            self.is_complete = not message.get("more_body", False)

    def events(self) -> list[dict[str, str]]:
        texts = b"".join(self.read).decode().split("\n\n")
        return [
            dict(li.split(": ", 1) for li in each.splitlines()) for each in texts if ": " in each
        ]


def serving(camera: Listened, client: Client, check_key=lambda: None) -> "asyncio.Task[None]":
    context = RequestContext({"headers": []}, client.receive, client.send, lambda: False)
    return asyncio.ensure_future(AnswerStream(context, camera, check_key).serve(7))


async def listening(camera: Listened) -> SendQueue:
    while camera.queue is None:
        await asyncio.sleep(0)
    return camera.queue


def test_messages_become_events_and_an_answer_has_its_number_as_id():
    async def run() -> Client:
        camera, client = Listened(), Client()
        served = serving(camera, client)
        queue = await listening(camera)
        assert camera.after == 7
        queue.send({"type": "answer", "number": 8, "text": "two\n\nlines"})
        queue.send_if_room({"type": "preview", "number": 9, "text": "a"})
        queue.send({"type": "ended"})
        queue.finish(CloseCode.ENDED)
        await served
        assert camera.queue is None
        return client

    client = asyncio.run(run())
    answer, preview, ended = client.events()
    assert (answer["event"], answer["id"]) == ("answer", "8")
    assert json.loads(answer["data"])["text"] == "two\n\nlines"
    assert (preview["event"], "id" in preview) == ("preview", False)
    assert ended["event"] == "ended"
    assert client.is_complete
    assert client.headers[b"content-type"].startswith(b"text/event-stream")


def test_a_comment_is_sent_while_nothing_else_is(monkeypatch):
    monkeypatch.setattr(answer_stream, "IDLE_S", 0.01)

    async def run() -> None:
        camera, client = Listened(), Client()
        served = serving(camera, client)
        await until(lambda: client.read.count(b":\n\n") >= 3)
        (await listening(camera)).send({"type": "answer", "number": 8})
        await until(client.events)
        client.left.set()
        with pytest.raises(ClientDisconnectedError):
            await served
        assert camera.queue is None

    asyncio.run(run())


def test_a_reader_that_takes_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(answer_stream, "STALLED_S", 0.05)

    async def run() -> None:
        camera, client = Listened(), Client()
        served = serving(camera, client)
        queue = await listening(camera)
        client.reads.clear()
        queue.send({"type": "answer", "number": 8})
        with pytest.raises(ClientDisconnectedError):
            await served
        assert camera.queue is None

    asyncio.run(run())


def test_a_revoked_key_ends_the_stream_with_an_error(monkeypatch):
    monkeypatch.setattr(answer_stream, "LOOK_S", 0.01)
    revoked = RefusedError(HTTPStatus.UNAUTHORIZED, "the key is not valid any more")
    checks = iter([None, None])

    def check() -> None:
        if next(checks, revoked) is revoked:
            raise revoked

    async def run() -> Client:
        camera, client = Listened(), Client()
        await serving(camera, client, check)
        assert camera.queue is None
        return client

    client = asyncio.run(run())
    (error,) = client.events()
    said = json.loads(error["data"])
    assert (error["event"], said["code"], said["is_last"]) == ("error", "unauthorized", True)
    assert client.is_complete


def test_what_waits_for_a_reader_is_bounded():
    async def run() -> None:
        queue = SendQueue()
        for number in range(2 * MOST_WAITING):
            queue.send({"type": "answer", "number": number})
        got = 0
        while not isinstance(message := await queue.next(), CloseCode):
            got += 1
        assert (got, message) == (MOST_WAITING, CloseCode.TRY_LATER)

    asyncio.run(run())


def test_the_newest_answers_are_kept_whoever_reads():
    async def run() -> None:
        kept = AnswerBuffer()
        for number in range(1, MAX_KEPT + 11):
            await asyncio.wait_for(kept.wait_for_room(), 1)
            assert kept.add({"type": "answer"})["number"] == number
        assert (kept.number, len(kept)) == (MAX_KEPT + 10, MAX_KEPT)
        assert [message["number"] for message in kept.after(0)] == list(range(11, MAX_KEPT + 11))
        assert [message["number"] for message in kept.after(MAX_KEPT + 8)] == [73, 74]
        assert list(kept.after(MAX_KEPT + 10)) == list(kept.after(10**9)) == []

    asyncio.run(run())
