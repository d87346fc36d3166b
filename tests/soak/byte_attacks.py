"""Attacks that speak bytes, not messages: a process for `serve_bytes`.

    echo KEY | python -m tests.soak.byte_attacks pings 127.0.0.1 8000

It attacks until SIGTERM, and says then what it did, as one line of JSON. It runs at the lowest
priority: a real attacker has a processor of its own. Nothing but Python's library is imported, so
that it begins at once.
"""

import argparse
import base64
import contextlib
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MODEL = "target"
PAUSE_S = 0.02
"""After a connection that the server has ended: the attacker's share of the machine is bounded."""
CHUNK = 1 << 16


@dataclass
class Attacker:
    """Its attacks take one connection each, and return when the server has ended it."""

    host: str
    port: int
    key: str
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    done: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)
    most_bytes: int = 1 << 62
    """After so many a connection is left."""

    def leave(self) -> None:
        """Close what is kept open."""
        while self._kept:
            self._kept.pop().close()

    # Without a key.

    def pipeline(self) -> None:
        """Requests that follow one another, with no wait for an answer."""
        self._flood(b"", b"GET /x HTTP/1.1\r\n\r\n")

    def pipelined_pages(self) -> None:
        """The same, of pages that need no key."""
        page = self.chance.choice((b"/openapi.json", b"/", b"/ready", b"/health"))
        self._flood(b"", b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % page)

    def pipelined_bodies(self) -> None:
        """The same, with bodies."""
        self._flood(b"", b"POST /v1/completions HTTP/1.1\r\ncontent-length: 3\r\n\r\n{}\n")

    def unread(self) -> None:
        """Answers that are never read."""
        self._flood(b"", b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", reads=False)

    def headers(self) -> None:
        """A head without an end."""
        self._flood(b"GET / HTTP/1.1\r\n", b"a: b\r\n")

    def address(self) -> None:
        """An address without an end."""
        self._flood(b"GET /", b"a")

    def rubbish(self) -> None:
        """No HTTP, or almost."""
        with self._connected() as raw:
            head = bytearray(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
            )
            for _ in range(self.chance.randrange(1, 9)):
                head[self.chance.randrange(len(head))] = self.chance.randrange(256)
            self._send(raw, bytes(head) + self.chance.randbytes(self.chance.randrange(999)))
            if self.chance.random() < 0.5:
                raw.shutdown(socket.SHUT_WR)
            elif self.chance.random() < 0.5:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                raw.recv(CHUNK)

    def connections(self) -> None:
        """A connection that says nothing; hundreds are kept."""
        with contextlib.suppress(OSError):
            self._kept.append(socket.create_connection((self.host, self.port), 5))
            self.done["connections"] += 1
        if len(self._kept) > 1500:
            self._kept.pop(0).close()

    def dripped_heads(self) -> None:
        """A head of which one byte comes at a time, on many connections at once."""
        self._drip(b"GET /", b"a")

    def hammer(self) -> None:
        """Requests that are refused, one after the other."""
        with self._connected() as raw:
            while not self.stop.is_set() and self._send(raw, b"GET /v1/models HTTP/1.1\r\n\r\n"):
                if not raw.recv(CHUNK):
                    break

    def handshakes(self) -> None:
        """Sockets without a key, and frames after them."""
        with self._connected() as raw:
            self._send(raw, _handshake("") + _frame(0x9) * 10_000)
            with contextlib.suppress(TimeoutError):
                while raw.recv(CHUNK):
                    pass

    # With a tenant's key.

    def chunks(self) -> None:
        """A body in chunks of one byte."""
        head = self._head("POST", "/v1/completions", "transfer-encoding: chunked\r\n")
        self._flood(head, b"1\r\nx\r\n")

    def dripped_bodies(self) -> None:
        """A body of which one byte comes at a time."""
        self._drip(self._head("POST", "/v1/completions", "content-length: 100000\r\n"), b" ")

    def left_bodies(self) -> None:
        """A body half of which comes, and then nothing more: the connection is half closed."""
        with self._connected() as raw:
            self._send(raw, self._head("POST", "/v1/completions", "content-length: 9999\r\n{"))
            raw.shutdown(socket.SHUT_WR)
            with contextlib.suppress(TimeoutError):
                raw.recv(CHUNK)

    def refused_bodies(self) -> None:
        """Bodies that are refused, one after the other."""
        bodies = (
            json.dumps({"model": MODEL, "prompt": ["x" * 100] * 5000}),
            json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x"}] * 5000}),
            '{"model":' + "[" * 400 + "]" * 400 + "}",
            json.dumps({"model": MODEL, "prompt": "x", "nothing": list(range(50_000))}),
            json.dumps({"model": "another", "prompt": "x" * 200_000}),
            "{" * 10_000,
        )
        self._ask(lambda: ("POST", self.chance.choice(_ASKED), self.chance.choice(bodies).encode()))

    def memory(self) -> None:
        """Every route of what is remembered, one after the other."""
        routes = (
            ("GET", "/v1/headstart/memory"),
            ("GET", "/v1/headstart/memory"),
            ("DELETE", "/v1/headstart/memory?stream=nobody"),
            ("DELETE", "/v1/headstart/memory?stream=s1"),
            ("GET", "/v1/headstart/memory/export?stream=s2"),
            ("POST", "/v1/headstart/memory/import"),
        )
        self._ask(lambda: (*self.chance.choice(routes), self.chance.randbytes(2000)))

    def listings(self) -> None:
        """Routes that count as no request in flight."""
        routes = ("/v1/models", "/v1/cameras", "/metrics", "/ready", "/demo", "/v1/cameras/x")
        self._ask(lambda: ("GET", self.chance.choice(routes), b""))

    def pings(self) -> None:
        """A socket's pings."""
        self._socket(b"", _frame(0x9, b"x" * self.chance.choice((0, 125))))

    def pongs(self) -> None:
        """A socket's pongs."""
        self._socket(b"", _frame(0xA))

    def fragments(self) -> None:
        """A message of a socket that never ends."""
        content = b"x" * self.chance.choice((0, 0, 1, 100))
        self._socket(_frame(0x1, b"x", is_final=False), _frame(0x0, content, is_final=False))

    def after_start(self) -> None:
        """Control frames and fragments of a camera that has begun."""
        start = {"type": "start", "stream": "bytes", "window_s": 8, "question": "What?"}
        frame = self.chance.choice((_frame(0x9), _frame(0x0, b"", is_final=False)))
        self._socket(_frame(0x1, json.dumps(start).encode()) + _frame(0x2, is_final=False), frame)

    def unread_socket(self) -> None:
        """Pings whose pongs are not read."""
        self._socket(b"", _frame(0x9, b"x" * 125), reads=False)

    def dripped_frames(self) -> None:
        """A message of which one byte comes at a time."""
        head = b"\x82\xfe" + struct.pack(">H", 60_000) + b"\0\0\0\0"
        self._drip(_handshake(self.key), b"x", after=head)

    def admitted(self) -> None:
        """Work for the engine, as much as is let in."""
        self._ask(lambda: ("POST", "/v1/completions", WORK))

    _kept: list[socket.socket] = field(default_factory=list)

    def _ask(self, request: Callable[[], tuple[str, str, bytes]]) -> None:
        """One request after the other on one connection, each answer read."""
        with self._connected() as raw, raw.makefile("rb") as answers:
            while not self.stop.is_set():
                method, path, body = request()
                kind = "content-type: application/json\r\n"
                head = self._head(method, path, f"{kind}content-length: {len(body)}\r\n")
                if not self._send(raw, head + body):
                    return
                status, length, closes = answers.readline(), 0, False
                while (line := answers.readline()) not in (b"\r\n", b""):
                    name, _, value = line.lower().partition(b":")
                    if name == b"content-length":
                        length = int(value)
                    closes |= name == b"transfer-encoding"
                answers.read(length)
                self.done[status.decode("latin-1")[9:12]] += 1
                if not status or closes:
                    return

    def _socket(self, first: bytes, then: bytes, *, reads: bool = True) -> None:
        with self._connected() as raw:
            self._send(raw, _handshake(self.key))
            answer = raw.recv(CHUNK)
            self.done["sockets" if b" 101 " in answer[:20] else "refused sockets"] += 1
            if b" 101 " in answer[:20]:
                self._pour(raw, first, then, reads=reads)

    def _flood(self, first: bytes, then: bytes, *, reads: bool = True) -> None:
        with self._connected() as raw:
            self._pour(raw, first, then, reads=reads)

    def _pour(self, raw: socket.socket, first: bytes, then: bytes, *, reads: bool) -> None:
        """Send the second again and again, until the server ends it."""
        if reads:
            threading.Thread(target=self._drain, args=(raw,), daemon=True).start()
        chunk = then * max(1, CHUNK // len(then))
        self._send(raw, first)
        sent, at = 0, 0
        raw.settimeout(0.2)
        while not self.stop.is_set() and sent < self.most_bytes:
            try:
                num = raw.send(chunk[at:])
            except TimeoutError:
                continue
            except OSError:
                self.done["ended by the server"] += 1
                return
            sent, at = sent + num, (at + num) % len(chunk)
            self.done["bytes"] += num

    def _drip(self, first: bytes, then: bytes, after: bytes = b"") -> None:
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(self._connected()) for _ in range(100)]
            for raw in opened:
                self._send(raw, first)
                if after:
                    raw.recv(CHUNK)
                    self._send(raw, after)
            while opened and not self.stop.wait(0.1):
                opened = [raw for raw in opened if self._send(raw, then)]

    def _drain(self, raw: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                try:
                    if not raw.recv(CHUNK):
                        return
                except TimeoutError:
                    if self.stop.is_set():
                        return

    def _send(self, raw: socket.socket, content: bytes) -> bool:
        try:
            raw.sendall(content)
        except OSError:
            self.done["ended by the server"] += 1
            return False
        self.done["bytes"] += len(content)
        return True

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        with socket.create_connection((self.host, self.port), 5) as raw:
            self.done["connections"] += 1
            yield raw

    def _head(self, method: str, path: str, more: str) -> bytes:
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{key}{more}\r\n".encode()


WORK = json.dumps(
    {"model": MODEL, "prompt": "What is there?", "max_tokens": 24, "ignore_eos": True}
).encode()
_ASKED = ("/v1/chat/completions", "/v1/completions", "/tokenize")


def _frame(kind: int, content: bytes = b"", *, is_final: bool = True) -> bytes:
    """Masked, as a client's frames are."""
    length = len(content)
    told = bytes((0x80 | length,)) if length < 126 else b"\xfe" + struct.pack(">H", length)
    return bytes((0x80 * is_final | kind,)) + told + bytes(4) + content


def _handshake(key: str) -> bytes:
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    nonce = base64.b64encode(os.urandom(16)).decode()
    return (
        "GET /v1/live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: headstart.live.v1\r\n"
        f"{authorization}Sec-WebSocket-Key: {nonce}\r\n\r\n"
    ).encode()


A = Attacker
ATTACKS: dict[str, tuple[Callable[[Attacker], None], int]] = {
    "pipeline": (A.pipeline, 8),
    "pipelined_pages": (A.pipelined_pages, 8),
    "pipelined_bodies": (A.pipelined_bodies, 8),
    "unread": (A.unread, 32),
    "headers": (A.headers, 8),
    "address": (A.address, 8),
    "rubbish": (A.rubbish, 8),
    "connections": (A.connections, 2),
    "dripped_heads": (A.dripped_heads, 4),
    "hammer": (A.hammer, 16),
    "handshakes": (A.handshakes, 4),
    "chunks": (A.chunks, 8),
    "dripped_bodies": (A.dripped_bodies, 1),
    "left_bodies": (A.left_bodies, 4),
    "refused_bodies": (A.refused_bodies, 8),
    "memory": (A.memory, 16),
    "listings": (A.listings, 16),
    "pings": (A.pings, 4),
    "pongs": (A.pongs, 4),
    "fragments": (A.fragments, 4),
    "after_start": (A.after_start, 4),
    "unread_socket": (A.unread_socket, 4),
    "dripped_frames": (A.dripped_frames, 1),
}
"""Each with how many connections of its kind there are at once."""
WORKING: dict[str, tuple[Callable[[Attacker], None], int]] = {"admitted": (A.admitted, 64)}
"""Attacks with work for the engine."""


def attack(attacker: Attacker, name: str, num_at_once: int | None = None) -> list[threading.Thread]:
    """Start an attack, which goes on until its attacker is stopped."""
    act, usual = {**ATTACKS, **WORKING}[name]

    def go() -> None:
        while not attacker.stop.is_set():
            try:
                act(attacker)
            except OSError:
                attacker.done["errors"] += 1
            attacker.stop.wait(PAUSE_S)

    threads = [threading.Thread(target=go, daemon=True) for _ in range(num_at_once or usual)]
    for thread in threads:
        thread.start()
    return threads


def main() -> None:
    """Attack until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=(*ATTACKS, *WORKING))
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("at_once", type=int, nargs="?", help="connections; else the attack's own")
    given = parser.parse_args()
    key = sys.stdin.readline().strip()
    attacker = Attacker(given.host, given.port, key, random.Random(os.getpid()))

    def end(*_: object) -> None:
        os.write(sys.stdout.fileno(), f"{json.dumps(attacker.done)}\n".encode())
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    os.nice(10)
    print("under way", flush=True)
    attack(attacker, given.name, given.at_once)
    while True:
        time.sleep(0.2)  # a signal may be given to another thread


if __name__ == "__main__":
    main()
