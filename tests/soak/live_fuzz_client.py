"""A client that fuzzes the live socket: one connection after another, and a judge of the replies.

What it says on a connection depends on its seed and the connection's number, but for tokens and
numbers that the server makes up.
"""

import contextlib
import json
import random
import socket
import time
from http import HTTPStatus
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from headstart_client.wire import KEY_PREFIX, SUBPROTOCOL, CloseCode
from rig.live_camera import LiveCamera
from rig.servers import Server
from tests.soak.live_fuzz_tally import Tally
from tests.soak.live_message_maker import LiveMessageMaker, Sent

PATIENCE_S = 300.0
MAX_MESSAGES = 60
"""Of one connection, besides floods of questions."""
NUM_FLOOD = 12
"""Questions at once, more than are answered at a time."""
SECRETS = ("Traceback", "site-packages", 'File "', "/tmp/", "/home/", "/root/", "key-")
SAID = (
    *("started", "preview", "confirmed", "retracted", "answer", "compared", "counts", "error"),
    "ended",
)
UNANSWERED_PING = "keepalive ping timeout"
"""How uvicorn closes, with 1011 too, if a client does not answer its ping: this one reads late."""
# Without pings of the client's own: one that gets no reply would close with 1011, too.
CONNECTING: dict[str, Any] = {"open_timeout": PATIENCE_S, "close_timeout": 5, "ping_interval": None}
HANDSHAKES: tuple[dict[str, Any], ...] = (
    {"key": ""},
    {"key": "wrong"},
    {"key": "", "subprotocols": [SUBPROTOCOL, KEY_PREFIX + "wrong"]},
    {"subprotocols": ["headstart.live.v2"]},
    {"subprotocols": None},
    {"additional_headers": {"Authorization": "Bearer " + "x" * 2000}},
)
# Frames by the letter of RFC 6455: opcode, mask bit and length, a mask, a payload.
RAW_FRAMES = {
    "half a frame": b"\x82\xfe\x10\x00" + bytes(4) + b"half",
    "unmasked frame": b"\x81\x02{}",
    "reserved opcode": b"\x83\x80" + bytes(4),
    "reserved bits": b"\xf1\x80" + bytes(4),
    "text that is no UTF-8": b"\x81\x82" + bytes(4) + b"\xff\xfe",
    "a length of 2**63": b"\x82\xff" + b"\xff" * 8 + bytes(4),
    "a continuation of nothing": b"\x80\x80" + bytes(4),
    "long ping": b"\x89\xfe\x00\xc8" + bytes(4 + 200),
}


class FuzzClient:
    """One client of one tenant. Used from one thread only."""

    def __init__(self, server: Server, key: str, seed: int, tally: Tally) -> None:
        self._server, self._key, self._seed, self._tally = server, key, seed, tally
        self._num_connections = 0
        self._begin()
        self._token: str | None = None
        """Of the newest camera of this client."""
        self._last = 0
        """The newest answer that has arrived from it."""

    def run(self, num_messages: int) -> None:
        """Connect again and again until so many messages have been sent by all clients."""
        while self._tally.num_sent < num_messages and self._server.process.poll() is None:
            self._num_connections += 1
            self._begin()
            try:
                self._connection()
            except Exception as error:
                self._find(f"the client did not expect {error!r}")

    def _begin(self) -> None:
        """Forget the connection before, so that this one can be seen again by itself."""
        name = f"seed {self._seed}, connection {self._num_connections}"
        self._dice, self._maker = random.Random(name), LiveMessageMaker(name)
        self._done: list[str] = []
        self._newest = 0
        """The newest answer on this connection."""
        self._foreign: str | None = None
        """The token that was tried although it is another tenant's."""

    def _connection(self) -> None:
        odd = self._dice.choice(HANDSHAKES) if self._dice.random() < 0.05 else {}
        options = {"key": self._key, **CONNECTING, **odd}
        try:
            camera = LiveCamera(self._server, **options)
        except InvalidStatus as refused:
            status = refused.response.status_code
            self._tally.count_said(f"handshake {status}")
            self._judge_text(str(refused.response.body))
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                self._find(f"a handshake was answered with {status}")
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                time.sleep(0.2)  # for broken cameras to end
            return
        except (InvalidHandshake, OSError, TimeoutError) as error:
            self._find(f"a handshake failed: {error!r}")
            return
        with contextlib.closing(camera.socket):
            try:
                self._open(camera)
                self._go_on(camera)
                self._leave(camera)
            except (ConnectionClosed, OSError):
                self._closed(camera)

    def _open(self, camera: LiveCamera) -> None:
        dice, maker = self._dice, self._maker
        chance = dice.random()
        if chance < 0.05:
            return  # something else comes first
        if chance < 0.20:
            self._send(camera, self._resuming())
        elif chance < 0.28:
            self._send(camera, maker.spoiled(maker.start()))
        else:
            self._token, self._last = None, 0
            self._send(camera, maker.start())
        if dice.random() < 0.9:
            self._hear(camera, PATIENCE_S)

    def _go_on(self, camera: LiveCamera) -> None:
        dice = self._dice
        rudeness = dice.choice((0, 0, 0, 0.03, 0.3))
        for _ in range(dice.randrange(MAX_MESSAGES)):
            self._send(camera, self._rude() if dice.random() < rudeness else self._polite())
            if dice.random() < 0.5:
                self._hear_all(camera)
            if dice.random() < 0.02:
                for _ in range(NUM_FLOOD):
                    self._send(camera, self._maker.ask())
            if dice.random() < 0.02:
                self._raw(camera, dice.choice(sorted(RAW_FRAMES)) if rudeness else "long ping")
            if dice.random() < 0.04:
                time.sleep(dice.choice((0.01, 0.1, 0.5)))
                self._hear_all(camera)

    def _polite(self) -> Sent:
        maker, chance = self._maker, self._dice.random()
        if maker.has_sensor and self._dice.random() < 0.2:
            return maker.events()
        if chance < 0.75:
            return maker.picture()
        if chance < 0.85:
            return maker.ask()
        return maker.ack(self._last) if chance < 0.99 else maker.end()

    def _rude(self) -> Sent:
        maker = self._maker
        makers = (
            maker.odd_picture,
            maker.odd_picture,
            maker.odd_picture,
            maker.events,
            maker.rubbish,
            maker.start,
            self._resuming,
            lambda: maker.ack_of_the_future(self._last),
            lambda: maker.spoiled(self._polite()),
        )
        return self._dice.choice(makers)()

    def _resuming(self) -> Sent:
        """With the token of one's own camera, of an old one, of another tenant's, or of none."""
        dice, tally = self._dice, self._tally
        which, place = dice.random(), dice.random()
        token = self._token
        if which < 0.2:
            old = tally.tokens(self._key, of_others=False)
            token = old[int(place * len(old))] if old else None
        elif which < 0.4:
            others = tally.tokens(self._key, of_others=True)
            token = self._foreign = others[int(place * len(others))] if others else None
        elif which < 0.45:
            token = None
        return self._maker.resume(token, dice.choice((self._last, 0, self._last + 7)))

    def _leave(self, camera: LiveCamera) -> None:
        match self._dice.randrange(8):
            case 0 | 1 | 2 | 3:
                self._send(camera, self._maker.end())
                until_s = time.monotonic() + PATIENCE_S
                while time.monotonic() < until_s:
                    if (message := self._hear(camera, PATIENCE_S)) is not None:
                        if message["type"] == "ended":
                            return
                        self._send(camera, self._maker.ack(self._last))
                self._find("a camera did not end")
            case 4:
                code = self._dice.choice((1000, 1000, 1001, 1008, 3000, 4999))
                camera.socket.close(code, "é" * self._dice.randrange(60))
                self._done.append(f"close {code}")
            case 5:
                self._raw(camera, "half a frame")
                camera.cut()
            case 6:
                camera.socket.socket.shutdown(socket.SHUT_WR)
            case _:
                camera.cut()

    def _send(self, camera: LiveCamera, sent: Sent) -> None:
        self._tally.count_sent(sent.kind)
        self._done.append(f"{sent.kind} {sent.content[:60]!r}")
        camera.socket.send(sent.content)

    def _raw(self, camera: LiveCamera, name: str) -> None:
        self._tally.count_sent(name)
        self._done.append(name)
        camera.socket.socket.sendall(RAW_FRAMES[name])

    def _hear_all(self, camera: LiveCamera) -> None:
        while self._hear(camera, 0) is not None:
            pass

    def _hear(self, camera: LiveCamera, timeout_s: float) -> dict[str, Any] | None:
        """The next message, judged; none if there is none in time."""
        try:
            text = camera.socket.recv(timeout=timeout_s)
        except TimeoutError:
            if timeout_s:
                self._find(f"nothing was said for {timeout_s:g} s")
            return None
        message = json.loads(text)
        kind = message["type"]
        self._judge_text(str(text))
        if kind not in SAID:
            self._find(f"a message of type {kind!r}")
        self._tally.count_said(f"error {message['code']}" if kind == "error" else kind)
        if kind == "error" and HTTPStatus[message["code"].upper()] >= 500:
            self._find(f"an error of the server's own: {text!r}")
        if kind == "started":
            if message["token"] == self._foreign:
                self._find("another tenant's camera was resumed")
            if not message["resumed"]:
                self._tally.keep_token(self._key, message["token"])
            self._token = message["token"]
        if kind == "answer" and "number" in message:
            if message["number"] <= self._newest:
                self._find(f"answer {message['number']} came after {self._newest}")
            self._newest, self._last = message["number"], max(self._last, message["number"])
        return dict(message)

    def _closed(self, camera: LiveCamera) -> None:
        """The connection is gone: judge what was said last, and how it ended.

        A reset may overtake the server's last words where the client is still sending (1006).
        """
        with contextlib.suppress(ConnectionClosed, OSError):
            self._hear_all(camera)
        code, reason = int(camera.socket.close_code or 0), camera.socket.close_reason
        if reason == UNANSWERED_PING:
            self._tally.count_said("close over a ping that was not answered")
            return
        self._tally.count_said(f"close {code}")
        if code == CloseCode.FAILED:
            self._find(f"the server closed with 1011: {reason!r}")

    def _judge_text(self, text: str) -> None:
        asked = "".join(self._done)
        for secret in SECRETS:
            if secret in text and secret not in asked:
                self._find(f"it says {secret!r}: {text[:300]}")

    def _find(self, what: str) -> None:
        where = f"seed {self._seed}, connection {self._num_connections}"
        self._tally.find(what, f"{where}: {self._done[-8:]}")
