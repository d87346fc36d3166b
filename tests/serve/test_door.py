"""The door alone: who gets through it while the server is short of memory, or does not read."""

import asyncio
import json

import httpx
import pytest

from headstart.serve import door as door_module
from headstart.serve.door import Door
from headstart.serve.heartbeat import Heartbeat
from headstart.serve.logbook import Logbook
from headstart.serve.quota import Quota
from headstart.serve.settings import Limits, Settings
from tests.serve.servers import CHAT


class Answers:
    """Stands for what is behind the door: an engine that answers at once, or never ends."""

    engine_is_dead = False
    drafter_state = "none"
    decoders_state = "up"

    def __init__(self, *, ends: bool = True) -> None:
        self._ends = ends

    async def engine_is_healthy(self) -> bool:
        return True

    async def answer(self, passage, body, threads, path) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await passage.send({"type": "http.response.start", "status": 200, "headers": headers})
        while not self._ends:
            await passage.send({"type": "http.response.body", "body": b"x", "more_body": True})
        await passage.send({"type": "http.response.body", "body": b"done"})


async def lively() -> None:
    return


def made(tmp_path, answers: Answers, **limits) -> Door:
    bounds = Limits(**limits)
    settings = Settings(open=True, limits=bounds, demo=tmp_path)
    logbook = Logbook(tmp_path / "log")
    return Door(None, settings, answers, logbook, Quota(bounds), Heartbeat(lively, 30.0))


def replies(door_of, *asked: tuple[str, str]) -> list[httpx.Response]:
    async def run() -> list[httpx.Response]:
        door = door_of()
        client = httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://here")
        try:
            return [await client.request(method, path, content=b"{}") for method, path in asked]
        finally:
            await client.aclose()
            door.close()

    return asyncio.run(run())


def test_short_of_memory_nobody_else_is_let_in_and_ready_says_so(tmp_path):
    asked = (("POST", CHAT), ("GET", "/ready"), ("GET", "/demo"))
    enough = replies(lambda: made(tmp_path, Answers()), *asked)
    assert [reply.status_code for reply in enough] == [200, 200, 200]
    # More than any machine has.
    short = replies(lambda: made(tmp_path, Answers(), min_free_bytes=1 << 60), *asked)
    assert [reply.status_code for reply in short] == [503, 503, 200]
    assert int(short[0].headers["retry-after"]) > 0
    assert "memory" in short[0].text
    assert short[1].json()["short_of_memory"]


def test_who_does_not_read_holds_no_place_and_no_task(tmp_path, monkeypatch):
    monkeypatch.setattr(door_module, "REFUSAL_S", 0.2)
    sent: list[bytes] = []

    async def run() -> None:
        door = made(tmp_path, Answers(ends=False), request_s=0.3)
        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": []}

        async def receive():
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message) -> None:
            if message["type"] == "http.response.body":
                sent.append(message["body"])
                await asyncio.Event().wait()  # its buffers are full

        try:
            await asyncio.wait_for(door(scope, receive, send), 5)
            assert door.crowd.size == 0
        finally:
            door.close()

    asyncio.run(run())
    assert sent[0] == b"x"
    assert b"took longer" in sent[-1]


def test_a_long_answer_waits_for_its_reader(tmp_path):
    content = bytes(range(256)) * 2048
    (tmp_path / "clip.mp4").write_bytes(content)
    pieces: list[bytes] = []

    async def run() -> None:
        door = made(tmp_path, Answers())
        scope = {"type": "http", "method": "GET", "path": "/demo/clip.mp4", "headers": []}

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message) -> None:
            if message["type"] == "http.response.body":
                pieces.append(message["body"])
                assert door.crowd.size == 1, "it counts until it is read"

        await door(scope, receive, send)
        door.close()

    asyncio.run(run())
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= 1 << 16


@pytest.mark.parametrize("tenants", [{}, {"north": ["key-north"]}])
def test_without_open_and_without_a_key_nothing_opens(tmp_path, tenants):
    from headstart.serve.keys import Keys

    def closed() -> Door:
        settings = Settings(keys=Keys.of({"tenants": tenants}))
        logbook, quota = Logbook(tmp_path / "log"), Quota(settings.limits)
        return Door(None, settings, Answers(), logbook, quota, Heartbeat(lively, 30.0))

    asked = (("POST", CHAT), ("GET", "/metrics"), ("GET", "/demo"), ("GET", "/version"))
    assert {reply.status_code for reply in replies(closed, *asked)} == {401}
    (ready,) = replies(closed, ("GET", "/ready"))
    assert json.loads(ready.text) == {"ready": True}
