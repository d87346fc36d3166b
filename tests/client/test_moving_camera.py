"""A live camera whose server is gone goes on with another one: no answer comes twice.

The servers here speak the protocol and hold no model; they are real sockets.
"""

import contextlib
import json
import threading

import pytest

pytest.importorskip("websockets")

from websockets.sync.server import serve

from headstart.errors import LiveError
from headstart_client.live_client import LiveClient
from headstart_client.wire import SUBPROTOCOL

ANSWER = {
    "type": "answer",
    "start_us": 0,
    "stop_us": 1,
    "num_frames": 1,
    "finish_reason": "stop",
    "first_token_s": 0.1,
    "wait_s": 0.2,
    "num_passes": 1,
    "num_tokens": 1,
    "accepted": 0,
}


class Servers:
    """One address behind which one server follows another, as behind a router."""

    def __init__(self):
        self.asked, self.sessions, self.acked = [], [], []
        self.scripts = []

    def __call__(self, socket):
        self.sessions.append(socket.request.headers["X-Session-ID"])
        first = json.loads(socket.recv())
        self.asked.append(first["type"])
        script = self.scripts.pop(0)
        if script == "unknown":
            message = {"type": "error", "message": "there is no such camera", "is_last": True}
            socket.send(json.dumps(message))
            socket.close(1008)
            return
        texts, how = script
        started = {"type": "started", "token": "t", "limits": {"resume_s": 20.0}}
        socket.send(json.dumps(started))
        for number, text in texts.items():
            socket.send(json.dumps({**ANSWER, "number": number, "text": text}))
            self.acked.append(json.loads(socket.recv())["number"])
        if how == "drains":
            socket.send('{"type": "ended"}')
            socket.close(1001)
        elif how == "dies":
            socket.socket.close()
        else:
            assert json.loads(socket.recv()) == {"type": "end"}
            socket.send('{"type": "ended"}')
            socket.close(1000)


@pytest.fixture
def servers():
    servers = Servers()
    with serve(servers, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        servers.url = f"ws://127.0.0.1:{listening.socket.getsockname()[1]}"
        yield servers
        listening.shutdown()
        thread.join()


def watched(servers, num_answers, **more):
    options = {"stream": "front door", "window_s": 1.0, "question": "What?", **more}
    with LiveClient(servers.url, **options) as live:
        told = []
        for answer in live:
            told.append((answer.number, answer.text))
            if len(told) == num_answers:
                live.end()
        return told, live.num_moved


@pytest.mark.parametrize("how", ["drains", "dies"])
def test_numbers_go_on_and_nothing_comes_twice(servers, how):
    servers.scripts += [({1: "a", 2: "b"}, how), "unknown", ({1: "c", 2: "d"}, "ends")]
    told, num_moved = watched(servers, 4, moves=True)
    assert told == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert num_moved == 1
    assert servers.asked == ["start", "resume", "start"]
    assert servers.acked == [1, 2, 1, 2]


def test_every_connection_names_the_stream_to_a_router(servers):
    servers.scripts += [({1: "a"}, "drains"), "unknown", ({1: "b"}, "ends")]
    watched(servers, 2, moves=True)
    assert servers.sessions == ["front%20door"] * 3


def test_a_camera_that_does_not_move_ends_with_its_server(servers):
    servers.scripts += [({1: "a"}, "drains")]
    told, num_moved = watched(servers, 9)
    assert (told, num_moved) == ([(1, "a")], 0)
    servers.scripts += [({1: "a"}, "dies"), "unknown"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.raises(LiveError, match="no such camera"))
        watched(servers, 9)


def test_a_camera_that_has_ended_does_not_begin_again(servers):
    servers.scripts += [({1: "a"}, "ends")]
    assert watched(servers, 1, moves=True) == ([(1, "a")], 0)
    assert servers.asked == ["start"]
