"""The gateway without an engine: short memory, clients that do not read, missing keys."""

import asyncio
import json

import httpx
import pytest

from headstart_server import gateway as gateway_module
from headstart_server.access_log import AccessLog
from headstart_server.gateway import Gateway
from headstart_server.limits import Limits
from headstart_server.routes import CAMERAS
from headstart_server.settings import Settings
from rig.servers import CHAT
from tests.serve.gateways import gateway_of


class Answers:
    """In place of `Answering`: answers at once, or streams without end."""

    def __init__(self, *, ends: bool = True) -> None:
        self._ends = ends

    async def answer(self, context, body, path) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await context.send({"type": "http.response.start", "status": 200, "headers": headers})
        while not self._ends:
            await context.send({"type": "http.response.body", "body": b"x", "more_body": True})
        await context.send({"type": "http.response.body", "body": b"done"})


def gateway(tmp_path, answers: Answers, **limits) -> Gateway:
    settings = Settings(open=True, limits=Limits(**limits), demo=tmp_path)
    return gateway_of(settings, AccessLog(tmp_path / "log"), answers)


def replies(make_gateway, *asked: tuple[str, str]) -> list[httpx.Response]:
    async def run() -> list[httpx.Response]:
        gateway = make_gateway()
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(gateway), base_url="http://localhost"
        )
        try:
            return [await client.request(method, path, content=b"{}") for method, path in asked]
        finally:
            await client.aclose()

    return asyncio.run(run())


def test_short_of_memory_requests_are_refused_and_ready_says_so(tmp_path):
    asked = (("POST", CHAT), ("GET", "/ready"), ("GET", "/demo"))
    enough = replies(lambda: gateway(tmp_path, Answers()), *asked)
    assert [reply.status_code for reply in enough] == [200, 200, 200]
    # More than any machine has.
    short = replies(lambda: gateway(tmp_path, Answers(), min_free_bytes=1 << 60), *asked)
    assert [reply.status_code for reply in short] == [503, 503, 200]
    assert int(short[0].headers["retry-after"]) > 0
    assert "memory" in short[0].text
    assert short[1].json()["short_of_memory"]


def test_a_client_that_does_not_read_keeps_no_slot_and_no_task(tmp_path, monkeypatch):
    monkeypatch.setattr(gateway_module, "REFUSAL_S", 0.2)
    sent: list[bytes] = []

    async def run() -> None:
        made = gateway(tmp_path, Answers(ends=False), request_s=1.0)
        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": []}

        async def receive():
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message) -> None:
            if message["type"] == "http.response.body":
                sent.append(message["body"])
                await asyncio.Event().wait()  # its buffers are full

        await asyncio.wait_for(made(scope, receive, send), 60)
        assert made.admission.requests.num == 0

    asyncio.run(run())
    assert sent[0] == b"x"
    assert b"took longer" in sent[-1]


def test_a_long_file_is_sent_as_fast_as_the_client_reads(tmp_path):
    content = bytes(range(256)) * 2048
    (tmp_path / "clip.mp4").write_bytes(content)
    pieces: list[bytes] = []

    async def run() -> None:
        made = gateway(tmp_path, Answers())
        scope = {"type": "http", "method": "GET", "path": "/demo/clip.mp4", "headers": []}

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message) -> None:
            if message["type"] == "http.response.body":
                pieces.append(message["body"])
                assert made.admission.requests.num == 1, "it counts as in flight until it is read"

        await made(scope, receive, send)

    asyncio.run(run())
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= 1 << 16


def test_the_demo_lists_videos_with_the_events_of_the_same_name(tmp_path):
    directory = tmp_path / "demo"
    directory.mkdir()
    for name in ("b.mp4", "b.npz", "a.webm", "c.npz", "notes.txt"):
        (directory / name).write_bytes(b"")
    (reply,) = replies(lambda: gateway(directory, Answers()), ("GET", "/demo"))
    assert reply.json() == {
        "clips": [
            {"name": "a", "video": "/demo/a.webm", "events": None},
            {"name": "b", "video": "/demo/b.mp4", "events": "/demo/b.npz"},
        ],
        "compares": False,
    }
    (directory / "demo.json").write_text('{"question": "Why?", "plays": true, "more": 1}')
    (reply,) = replies(lambda: gateway(directory, Answers()), ("GET", "/demo"))
    assert [reply.json().get(name) for name in ("question", "plays", "more")] == [
        "Why?",
        True,
        None,
    ]


def test_a_body_counts_against_its_tenants_bytes_as_it_arrives(tmp_path):
    for limit, status in ((1, 429), (2, 200)):  # the body has two bytes
        (reply,) = replies(
            lambda limit=limit: gateway(tmp_path, Answers(), max_tenant_bodies_bytes=limit),
            ("POST", CHAT),
        )
        assert reply.status_code == status


@pytest.mark.parametrize("tenants", [{}, {"north": ["key-north"]}])
def test_without_a_key_every_route_but_public_ones_is_refused(tmp_path, tenants):
    from headstart_server.auth import Keys

    def with_keys() -> Gateway:
        settings = Settings(keys=Keys.of({"tenants": tenants}))
        return gateway_of(settings, AccessLog(tmp_path / "log"), Answers())

    asked = (("POST", CHAT), ("GET", "/metrics"), ("GET", "/demo"), ("GET", "/version"))
    asked += (("POST", CAMERAS), ("GET", CAMERAS), ("DELETE", f"{CAMERAS}/x"))
    asked += (("GET", f"{CAMERAS}/x/answers"), ("GET", f"{CAMERAS}/x/picture"))
    assert {reply.status_code for reply in replies(with_keys, *asked)} == {401}
    (ready,) = replies(with_keys, ("GET", "/ready"))
    assert json.loads(ready.text) == {"ready": True}
