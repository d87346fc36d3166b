"""Who may open a live socket, without a server: origins, servers without video, and delays."""

import asyncio
import json

import pytest

from headstart_client.wire import PATH, SUBPROTOCOL
from headstart_server import auth
from headstart_server.access_log import AccessLog
from headstart_server.admission import Admission
from headstart_server.delays import Delays
from headstart_server.live.route import EACH_S, LONGEST_S, NUM_FREE, LiveRoute
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError
from headstart_server.request_context import RequestContext
from headstart_server.settings import Settings
from headstart_server.settings_table import SettingsError
from tests.serve.test_quota import Clock
from tests.turned_loop import run_turned, settle, turn

PASSED = 501
"""All that is asked of it here passed: this route has no target that looks at video."""


def handshake(tmp_path, headers: dict[str, str], *, extension: bool = True, **server) -> list[dict]:
    settings = Settings.of({"server": {"target": "t", "open": True, **server}})
    admission = Admission(settings, Quota(settings.limits), lambda said: None)
    access_log = AccessLog(tmp_path / "log")
    route = LiveRoute(settings, admission, None, access_log)
    sent: list[dict] = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": PATH,
        "subprotocols": [SUBPROTOCOL],
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "extensions": {"websocket.http.response": {}} if extension else {},
    }
    asyncio.run(route(scope, receive, send))
    access_log.close()
    return sent


def status(tmp_path, origin: str | None, host: str = "127.0.0.1:8000", **server) -> int:
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    return handshake(tmp_path, headers, **server)[0]["status"]


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "127.0.0.1:8000"),
        (None, ""),
        ("http://192.168.1.7:8000", "192.168.1.7:8000"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://localhost:8000", "localhost:8000"),
        ("https://[::1]:8000", "[::1]:8000"),
    ],
)
def test_programs_and_the_servers_own_pages_may_use_an_open_server(tmp_path, origin, host):
    assert status(tmp_path, origin, host) == PASSED


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example.org", "127.0.0.1:8000"),
        ("null", "127.0.0.1:8000"),
        ("http://127.0.0.1:9000", "127.0.0.1:8000"),
        ("http://localhost:8000", "127.0.0.1:8000"),
        ("file://", ""),
    ],
)
def test_pages_of_other_sites_may_not(tmp_path, origin, host):
    assert status(tmp_path, origin, host) == 403


@pytest.mark.parametrize("origin", [None, "own"])
@pytest.mark.parametrize(
    "host", ["evil.example.org:8000", "127.0.0.1.evil.example.org", "localhost.evil.org", "[::1"]
)
def test_no_name_that_a_site_could_lead_here_is_answered_to(tmp_path, origin, host):
    assert status(tmp_path, origin and f"http://{host}", host) == 421


def test_an_operator_opens_it_to_the_pages_that_are_named(tmp_path):
    named = {"origins": ["https://cameras.example.org"]}
    assert status(tmp_path, "https://cameras.example.org", **named) == PASSED
    assert status(tmp_path, "https://cameras.example.org.evil.org", **named) == 403
    assert status(tmp_path, None, "cameras.example.org:8000", **named) == PASSED
    assert status(tmp_path, "http://evil.org", "cameras.example.org", **named) == 403
    own = handshake(tmp_path, {"host": "robot:8000"}, host="robot")
    assert own[0]["status"] == PASSED
    for wrong in ("cameras.example.org", "https://cameras.example.org/", "*", 3):
        with pytest.raises(SettingsError, match="origins"):
            Settings.of({"server": {"origins": [wrong]}})


def test_a_revoked_key_ends_a_socket_that_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(auth, "CHECK_EVERY_S", 0.0)
    path = tmp_path / "headstart.toml"
    path.write_text('[server]\ntarget = "t"\n[tenants]\nnorth = ["key-a", "key-b"]\n')
    settings = Settings.read(path)
    admission = Admission(settings, Quota(settings.limits), lambda said: None)
    route = LiveRoute(settings, admission, None, AccessLog(tmp_path / "log"))
    by_header = {"headers": [(b"authorization", b"Bearer key-a")], "subprotocols": [SUBPROTOCOL]}
    by_protocol = {"headers": [], "subprotocols": [SUBPROTOCOL, "headstart.key.key-b"]}
    open_sockets = [
        RequestContext(scope, None, None, lambda: False, tenant="north")
        for scope in (by_header, by_protocol)
    ]
    for context in open_sockets:
        route._check_key(context)
    path.write_text('[server]\ntarget = "t"\n[tenants]\nnorth = ["key-a"]\nsouth = ["key-b"]\n')
    route._check_key(open_sockets[0])
    with pytest.raises(RefusedError, match="another tenant"):
        route._check_key(open_sockets[1])
    path.write_text('[server]\ntarget = "t"\n[tenants]\nnorth = ["key-c"]\n')
    for context in open_sockets:
        with pytest.raises(RefusedError) as refused:
            route._check_key(context)
        assert refused.value.status == 401


def test_where_a_server_cannot_answer_a_handshake_it_closes(tmp_path):
    (closed,) = handshake(tmp_path, {"origin": "null"}, extension=False)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


def test_a_refused_handshake_is_logged(tmp_path):
    start, *_ = handshake(tmp_path, {"origin": "null"})
    assert start["type"] == "websocket.http.response.start"
    line = json.loads((tmp_path / "log").read_text().splitlines()[0])
    assert (line["event"], line["status"]) == ("live", 403)


class NoCameras:
    """In place of `SocketCameras`: no socket here comes so far."""

    async def drain(self) -> None:
        pass


class Sockets:
    """Clients of an open server, one after another, with a clock that stands still."""

    def __init__(self, tmp_path) -> None:
        settings = Settings.of({"server": {"target": "t", "open": True}})
        admission = Admission(settings, Quota(settings.limits), lambda said: None)
        self.log = AccessLog(tmp_path / "log")
        self.route = LiveRoute(settings, admission, NoCameras(), self.log)
        self.route._backoff = Delays(NUM_FREE, EACH_S, LONGEST_S, Clock())

    async def open(self, said: dict, sent: list[dict]) -> None:
        """Open one that says this, and serve it to its end."""
        heard = iter(({"type": "websocket.connect"}, said))

        async def receive():
            return next(heard)

        async def send(message):
            sent.append(message)

        headers = {"headers": [(b"host", b"127.0.0.1:8000")]}
        scope = {"type": "websocket", "path": PATH, "subprotocols": [SUBPROTOCOL], **headers}
        await self.route(scope, receive, send)


RUBBISH = {"type": "websocket.receive", "text": "rubbish"}
LEAVING = {"type": "websocket.disconnect", "code": 1000}


def test_whose_sockets_were_refused_waits_before_the_next_until_the_server_ends(tmp_path):
    sent: list[dict] = []

    async def run() -> None:
        sockets = Sockets(tmp_path)
        for _ in range(NUM_FREE):
            await sockets.open(RUBBISH, [])
        waiting = asyncio.ensure_future(sockets.open(RUBBISH, sent))
        await turn(0.9 * EACH_S)
        assert sent == [], "not accepted yet"
        assert sockets.route._opening.total() == 1, "it counts as one that is being opened"
        await sockets.route.drain()
        await waiting
        sockets.log.close()  # a thread of its own writes it

    run_turned(run())
    assert sent[0]["type"] == "websocket.accept"
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert ["delayed_s" in line for line in lines] == [False] * NUM_FREE + [True]


def test_whose_sockets_were_refused_is_heard_when_the_wait_is_over(tmp_path):
    async def run() -> None:
        sockets, sent = Sockets(tmp_path), []
        for _ in range(NUM_FREE):
            await sockets.open(RUBBISH, [])
        waiting = asyncio.ensure_future(sockets.open(RUBBISH, sent))
        await turn(0.9 * EACH_S)
        assert sent == []
        await turn(0.2 * EACH_S)
        assert sent[0]["type"] == "websocket.accept"
        await waiting

    run_turned(run())


def test_who_leaves_without_a_refusal_waits_for_nothing(tmp_path):
    async def run() -> None:
        sockets = Sockets(tmp_path)
        for _ in range(3 * NUM_FREE):
            sent: list[dict] = []
            served = asyncio.ensure_future(sockets.open(LEAVING, sent))
            await settle()
            assert served.done(), "without the clock going on"
        assert len(sockets.route._backoff) == 0

    run_turned(run())
