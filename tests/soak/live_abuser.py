"""A client that abuses the live socket until it is ended: a process of `live_beside_abusers`.

    echo KEY | python -m tests.soak.live_abuser frozen http://127.0.0.1:8000 PICTURES 8.0

It shows the JPEGs of a folder. It says "under way" when it begins, and after SIGTERM what it did,
as one line of JSON. It runs at the lowest priority: a real abuser has a processor of its own.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from headstart.errors import LiveError
from headstart_client.live_client import LiveClient, address_of
from headstart_client.wire import SUBPROTOCOL, Media, MediaKind

QUESTION = "What is happening?"
FROZEN_S = 30.0
NUM_ASKS = 10_000
"""Before it freezes: the server refuses most, in more bytes than a socket's buffers hold."""
PAUSE_S = 1.0
"""After a refusal."""


@dataclass
class Abuser:
    """Its methods do not return."""

    url: str
    key: str
    pictures: list[bytes]
    window_s: float
    done: Counter[str] = field(default_factory=Counter)
    _child: int | None = None

    def end(self, *_: object) -> None:
        """Say what was done and end at once: a send may wait until the server reads."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
        os.write(sys.stdout.fileno(), f"{json.dumps(self.done)}\n".encode())
        os._exit(0)

    def behaves(self) -> None:
        """One more camera that does nothing wrong, to compare the others with."""
        self._show("camera 0")

    def killed(self) -> None:
        """Killed in the middle of a window, again and again."""
        while True:
            with self._forked(lambda: self._show("camera 0")):
                time.sleep(self.window_s / 2)
            self.done["killed"] += 1

    def frozen(self) -> None:
        """Stopped while the server has much to tell it: neither reads nor sends."""
        while True:
            with self._forked(self._flood_and_freeze) as child:
                os.waitpid(child, os.WUNTRACED)
                self.done["frozen"] += 1
                until_s = time.monotonic() + FROZEN_S
                while time.monotonic() < until_s:
                    unread = unread_bytes(urlsplit(self.url).port or 0)
                    self.done["most unread bytes"] = max(self.done["most unread bytes"], unread)
                    time.sleep(PAUSE_S)

    def rubbish(self) -> None:
        """Random bytes and texts, and pictures that are none."""
        dice = random.Random(0)
        while True:
            with contextlib.suppress(WebSocketException, OSError), self._connected() as connection:
                if dice.random() < 0.8:
                    connection.send(json.dumps(self._start("rubbish")))
                self.done["connections"] += 1
                while True:
                    connection.send(self._rubbish(dice))
                    self.done["messages"] += 1
                    with contextlib.suppress(TimeoutError):
                        while True:
                            connection.recv(timeout=0)

    def too_fast(self) -> None:
        """Pictures as fast as the socket takes them."""
        while True:
            try:
                with self._client("camera 0") as live:
                    threading.Thread(target=_read, args=(live,), daemon=True).start()
                    for number in count():
                        if not live.send(self._picture(number), self._time_us(number)):
                            break
                        self.done["frames"] += 1
            except LiveError:
                self.done["refused"] += 1
            time.sleep(PAUSE_S)

    def one_name_twice(self) -> None:
        """Two cameras of one name at the same time, which is also another tenant's."""
        threading.Thread(target=self._show, args=("camera 0",), daemon=True).start()
        self._show("camera 0")

    def _show(self, stream: str) -> None:
        """Show windows at their pace."""
        while True:
            try:
                with self._client(stream) as live:
                    threading.Thread(target=_read, args=(live,), daemon=True).start()
                    for number in count():
                        if not live.send(self._picture(number), self._time_us(number)):
                            break
                        self.done["frames"] += 1
                        time.sleep(self.window_s / len(self.pictures))
            except LiveError:
                self.done["refused"] += 1
            time.sleep(PAUSE_S)

    def _flood_and_freeze(self) -> None:
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            parts = urlsplit(self.url)
            raw.connect((parts.hostname, parts.port))
            with self._connected(sock=raw, max_queue=1) as connection:
                connection.send(json.dumps(self._start("frozen")))
                for number in range(len(self.pictures)):
                    connection.send(self._message(number))
                ask = json.dumps({"type": "ask", "id": "x" * 128, "question": QUESTION})
                for _ in range(NUM_ASKS):
                    connection.send(ask)
                os.kill(os.getpid(), signal.SIGSTOP)  # with the connection open

    def _rubbish(self, dice: random.Random) -> str | bytes:
        content = dice.randbytes(dice.choice((0, 1, 9, 100, 5000)))
        match dice.randrange(6):
            case 0:
                return content
            case 1:
                return content.decode("latin-1")
            case 2:
                return self._message(dice.randrange(1 << 20))[: dice.randrange(200)]
            case 3:
                return json.dumps({"type": dice.choice(("start", "ask", "stop")), "id": "?"})
            case _:
                broken = dice.choice(self.pictures)[: dice.randrange(20, 4000)] + content
                time_us = dice.randrange(1 << 40)
                return Media(MediaKind.PICTURE, time_us, broken).pack()

    def _client(self, stream: str) -> LiveClient:
        start = {**self._start(stream)}
        del start["type"]
        return LiveClient(self.url, key=self.key, **start)

    def _start(self, stream: str) -> dict[str, Any]:
        start = {"stream": stream, "window_s": self.window_s, "question": QUESTION}
        return {"type": "start", **start, "max_tokens": 64}

    def _connected(self, **options: Any) -> ClientConnection:
        connection: ClientConnection = connect(
            address_of(self.url),
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            additional_headers={"Authorization": f"Bearer {self.key}"},
            compression=None,
            proxy=None,
            **options,
        )
        return connection

    def _message(self, number: int) -> bytes:
        return Media(MediaKind.PICTURE, self._time_us(number), self._picture(number)).pack()

    def _picture(self, number: int) -> bytes:
        return self.pictures[number % len(self.pictures)]

    def _time_us(self, number: int) -> int:
        return round(number * self.window_s * 1e6) // len(self.pictures)

    @contextlib.contextmanager
    def _forked(self, work: Callable[[], None]) -> Iterator[int]:
        """A child that works until the block is left, and is killed then."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until the child is known
        child = self._child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if not child:
            try:
                work()
            finally:
                os.kill(os.getpid(), signal.SIGSTOP)  # until it is killed, also if it failed
                os._exit(1)
        try:
            yield child
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self._child = None


def _read(live: LiveClient) -> None:
    with contextlib.suppress(LiveError, ConnectionClosed):
        for _ in live:
            pass


def unread_bytes(port: int) -> int:
    """What a server's sockets hold that their clients do not read: their windows are full."""
    most = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, queues = line.split()[1], line.split()[4]
        if int(local.rpartition(":")[2], 16) == port:
            most = max(most, int(queues.partition(":")[0], 16))
    return most


ABUSES: dict[str, Callable[[Abuser], None]] = {
    "behaves": Abuser.behaves,
    "killed": Abuser.killed,
    "frozen": Abuser.frozen,
    "rubbish": Abuser.rubbish,
    "too fast": Abuser.too_fast,
    "one name twice": Abuser.one_name_twice,
}


def main() -> None:
    """Abuse until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=ABUSES)
    parser.add_argument("url")
    parser.add_argument("pictures", type=Path)
    parser.add_argument("window_s", type=float)
    given = parser.parse_args()
    key = sys.stdin.readline().strip()
    shown = [path.read_bytes() for path in sorted(given.pictures.glob("*.jpg"))]
    abuser = Abuser(given.url, key, shown, given.window_s)
    signal.signal(signal.SIGTERM, abuser.end)
    os.nice(19)
    print("under way", flush=True)
    ABUSES[given.name](abuser)


if __name__ == "__main__":
    main()
