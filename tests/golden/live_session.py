"""Live sessions, word for word: what a real client and a real server said to each other.

    python -m tests.golden.live_session

starts a server on a tiny model, has our client talk to it, and writes `kept/live_session.jsonl`
anew. The first line holds what both ends agree on. Then a line names a session or is a message:
``client`` or ``server`` if it is text, ``client_media`` if it is bytes, in base64. ``cut`` is where
the connection broke.
"""

import io
import json
import socket
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
import PIL.Image
import pytest

from headstart.errors import LiveError
from headstart.media.events import Events, SensorSize
from headstart_client import live_client, wire
from headstart_client.live_client import LiveAnswer, LiveClient
from headstart_client.wire import MediaKind
from rig.waiting import wait_until

KEPT = Path(__file__).with_name("kept") / "live_session.jsonl"
SENSOR = SensorSize(48, 32)
SLOT_US, NUM_SLOTS, WINDOW_S = 100_000, 8, 0.8
ANYWHERE = "ws://127.0.0.1:8000"
"""Whoever records or plays a session says where the server is."""
Line = Mapping[str, Any]


def agreed() -> Line:
    """What both ends must know before the first message."""
    return {
        "path": wire.PATH,
        "subprotocol": wire.SUBPROTOCOL,
        "key_prefix": wire.KEY_PREFIX,
        "media_kinds": {kind.name.lower(): int(kind) for kind in MediaKind},
        "close_codes": {code.name.lower(): int(code) for code in wire.CloseCode},
    }


@dataclass(frozen=True)
class Frame:
    """One that is sent, with the events since the one before."""

    time_us: int
    payload: bytes
    events: Events | None = None


@dataclass
class Heard:
    """What a client made of a session."""

    answers: list[LiveAnswer] = field(default_factory=list)
    asked: list[LiveAnswer] = field(default_factory=list)
    words: list[Line] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def front(frames: Iterator[Frame], cut: Callable[[LiveClient], None]) -> Heard:
    """Pictures and events, words as they come, other questions, and a connection that breaks."""
    heard = Heard()
    with LiveClient(
        ANYWHERE,
        stream="front",
        window_s=WINDOW_S,
        question="What is happening?",
        schema={"type": "string", "pattern": "^[a-z ]{24}$"},
        system="Be brief.",
        max_tokens=48,
        sensor=str(SENSOR),
        on_words=heard.words.append,
    ) as live:
        for number in range(4):
            for _ in range(NUM_SLOTS):
                frame = next(frames)
                live.send(frame.payload, frame.time_us, frame.events)
            heard.answers.append(next(live))
            if number == 1:
                heard.asked.append(live.ask("How many?", max_tokens=4))
                cut(live)
                wait_until(
                    lambda: live.num_resumed or not live._thread.is_alive(), "another connection"
                )
        frame = next(frames)
        live.send(frame.payload, frame.time_us)  # is none, which the server says
        live.end()
        heard.answers += live
    return heard


def packets(frames: Iterator[Frame], cut: Callable[[LiveClient], None]) -> Heard:
    """Encoded video, and no words on the way."""
    heard = Heard()
    with LiveClient(
        ANYWHERE,
        stream="packets",
        window_s=WINDOW_S,
        step_s=WINDOW_S,
        question="What is happening?",
        max_tokens=4,
        codec="h264",
    ) as live:
        for _ in range(2):
            for _ in range(NUM_SLOTS):
                frame = next(frames)
                live.send_encoded(frame.payload, frame.time_us)
            heard.answers.append(next(live))
        live.end()
        heard.answers += live
    return heard


def refused(frames: Iterator[Frame], cut: Callable[[LiveClient], None]) -> Heard:
    """A camera that the server does not take."""
    with pytest.raises(LiveError) as error:
        LiveClient(ANYWHERE, stream="front", window_s=1e-6)
    return Heard(errors=[str(error.value)])


SESSIONS = {"front": front, "packets": packets, "refused": refused}


class Recorder:
    """Writes down the messages of connections in the order in which the client sees them."""

    def __init__(self, address: str, key: str) -> None:
        self.lines: list[Line] = [agreed()]
        self._address, self._key = address, key
        self._lock = Lock()
        self._connection: Any = None
        self._connect = live_client.connect_to

    def connect(self, address: str, key: str, stream: str) -> "Recorder":
        """In place of the client's way to a server."""
        self._connection = self._connect(self._address, self._key, stream)
        return self

    def note(self, by: str, what: Any) -> None:
        with self._lock:
            self.lines.append({by: what})

    def send(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self.note("client", message)
        else:
            self.note("client_media", b64encode(message).decode("ascii"))
        self._connection.send(message)

    def recv(self, timeout: float) -> str:
        message = self._connection.recv(timeout)
        self.note("server", message)
        return message

    def __iter__(self) -> Iterator[str]:
        for message in self._connection:
            self.note("server", message)
            yield message

    def cut(self, _: LiveClient) -> None:
        """Reset the TCP connection: neither side says goodbye."""
        self.note("cut", True)
        raw = self._connection.socket
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.shutdown(socket.SHUT_RD)  # wakes the reader, whose close sends the reset
        raw.close()

    @property
    def close_code(self) -> int | None:
        return self._connection.close_code

    def close(self) -> None:
        self._connection.close()


def pictures() -> Iterator[Frame]:
    """PNG, JPEG and WebP, each with some events before it."""
    dice = np.random.default_rng(7)
    for place in range(4 * NUM_SLOTS):
        shade = dice.integers(0, 256, (2, 3, 3), dtype=np.uint8).repeat(16, 0).repeat(16, 1)
        content = io.BytesIO()
        PIL.Image.fromarray(shade).save(content, ("PNG", "JPEG", "WEBP")[place % 3])
        t = place * SLOT_US - np.sort(dice.integers(0, SLOT_US // 2, 3))[::-1]
        x, y, p = (dice.integers(0, most, 3) for most in (SENSOR.width, SENSOR.height, 2))
        events = Events.checked(x, y, t, p, SENSOR) if place else None
        yield Frame(place * SLOT_US, content.getvalue(), events)
    yield Frame(4 * NUM_SLOTS * SLOT_US, b"no picture")


def encoded() -> Iterator[Frame]:
    """H.264, with a key picture at the start of each window."""
    from tests.media.encoded import encode, street

    for place, packet in enumerate(encode(street(2 * NUM_SLOTS))):
        yield Frame(place * SLOT_US, packet)


FOOTAGE = {"front": pictures, "packets": encoded, "refused": lambda: iter(())}


def record(url: str, key: str = "") -> list[Line]:
    """Have the client talk to a server, all sessions after one another."""
    recorder = Recorder(live_client.address_of(url), key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_client, "connect_to", recorder.connect)
        for name, session in SESSIONS.items():
            recorder.note("session", name)
            session(FOOTAGE[name](), recorder.cut)
    return recorder.lines


def read() -> list[Line]:
    """What is kept."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()]


def session_of(lines: Sequence[Line], name: str) -> list[Line]:
    """The messages of one session."""
    found, is_in = list[Line](), False
    for line in lines:
        if "session" in line:
            is_in = line["session"] == name
        elif is_in:
            found.append(line)
    return found


def media_in(lines: Sequence[Line]) -> list[bytes]:
    """The binary messages."""
    return [b64decode(line["client_media"]) for line in lines if "client_media" in line]


def texts_in(lines: Sequence[Line], by: str) -> list[str]:
    """What one of them said."""
    return [line[by] for line in lines if by in line]


def main() -> None:
    import tests.conftest  # noqa: F401 - what every engine of the tests is started with
    from headstart_lab.tiny import TinyVideoLlava
    from rig.servers import ENGINE, free_port, running, serve_command, start, toml

    with TemporaryDirectory() as name:
        home, port = Path(name), free_port()
        TinyVideoLlava().save(home / "target")
        tables = {
            "server": {"target": home / "target", "port": port, "open": True},
            "vllm": ENGINE,
        }
        (home / "headstart.toml").write_text(toml(tables))
        command = serve_command("--config", str(home / "headstart.toml"))
        with running(start(command, port, home / "server.log")) as server:
            lines = record(server.url)
    KEPT.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
