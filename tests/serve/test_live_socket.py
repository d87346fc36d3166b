"""One live connection: a client that leaves while it is told something, or sends too fast."""

import asyncio
from types import SimpleNamespace

import pytest

from headstart_client.wire import SUBPROTOCOL, CloseCode
from headstart_server.limits import Limits
from headstart_server.live import socket as live_socket
from headstart_server.live.socket import LiveSocket, ReadLimit
from headstart_server.request_context import RequestContext
from tests.serve.test_quota import Clock


def socket_of(receive, send=None, **limits) -> LiveSocket:
    scope = {"type": "websocket", "path": "/v1/live", "subprotocols": [SUBPROTOCOL], "headers": []}
    context = RequestContext(scope, receive, send, lambda: False)
    return LiveSocket(context, None, Limits(**limits), lambda: None)


def serve(first: str, gone_after: int) -> RequestContext:
    """Serve a client whose connection is gone after so many messages to it."""
    told = []

    async def receive():
        return {"type": "websocket.receive", "text": first}

    async def send(message):
        if len(told) == gone_after:
            raise OSError("the client is gone")  # as uvicorn's ClientDisconnected
        told.append(message)

    async def run() -> LiveSocket:
        socket = socket_of(receive, send)
        await socket.serve(lambda: None)
        return socket

    socket = asyncio.run(run())
    assert len(told) == gone_after
    assert socket.was_refused == (gone_after > 0)
    return socket._context


def test_a_client_that_leaves_before_its_refusal_is_no_failure_of_the_server():
    assert serve("rubbish", gone_after=1).details["code"] == 1008  # accepted, and no more
    assert serve("rubbish", gone_after=2).details["code"] == 1008  # refused, and not closed


def test_a_client_that_leaves_before_it_is_accepted_is_no_failure_of_the_server():
    assert serve("rubbish", gone_after=0).details == {"left": 0}


async def acknowledging():
    """A client that sends without end."""
    return {"type": "websocket.receive", "text": '{"type": "ack", "number": 0}'}


class Turned(Clock):
    """A clock that goes on by what the socket sleeps, and by nothing else."""

    def __init__(self) -> None:
        self.heard_s: list[float] = []
        self.socket: LiveSocket | None = None

    def of(self, limits: Limits) -> ReadLimit:
        return ReadLimit(limits, self)

    async def sleep(self, seconds: float) -> None:
        self.heard_s.append(self.socket._heard_s - self.now_s)
        self.now_s += seconds


@pytest.fixture
def turned(monkeypatch) -> Turned:
    clock = Turned()
    monkeypatch.setattr(live_socket, "ReadLimit", clock.of)
    monkeypatch.setattr(live_socket, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    return clock


def test_a_client_that_sends_without_end_is_read_at_the_pace(turned):
    began_s = turned.now_s
    turned.socket = socket_of(acknowledging, live_frames_per_minute=300)  # 20 messages a second
    for number in range(30):
        asyncio.run(turned.socket._receive())
        assert turned.now_s - began_s == pytest.approx(max(0, number - 19) / 20)


def test_a_client_that_is_not_read_is_not_idle(turned):
    turned.socket = socket_of(acknowledging, live_frames_per_minute=1)  # one in 15 s
    for _ in range(3):
        asyncio.run(turned.socket._receive())
    assert turned.heard_s == pytest.approx([15.0, 15.0])  # not before it may send again


def test_a_delay_ends_with_the_server():
    async def run() -> None:
        socket = socket_of(acknowledging)
        delayed = asyncio.ensure_future(socket.delay(600))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not delayed.done()
        socket.stop()
        await asyncio.wait_for(delayed, 10)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "is_over", "was_refused"),
    [
        (CloseCode.REFUSED, True, True),
        (CloseCode.TRY_LATER, True, True),
        (CloseCode.REFUSED, False, False),  # another connection has resumed it
        (CloseCode.FAILED, True, False),
        (CloseCode.GOING_AWAY, True, False),
    ],
)
def test_only_what_a_camera_was_refused_for_counts_as_a_refusal(code, is_over, was_refused):
    async def silent():
        await asyncio.Event().wait()

    async def send(message):
        pass

    async def run() -> bool:
        socket = socket_of(silent, send)
        socket._queue.finish(code)
        await socket._serve(SimpleNamespace(is_over=is_over, counts=dict))
        return socket.was_refused

    assert asyncio.run(run()) is was_refused
