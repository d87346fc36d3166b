"""Cameras that a server reads itself, for tests: their film, and a reader of their answers."""

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from rig.footage import encode
from rig.live_camera import MAX_TOKENS, NUM_SLOTS, QUESTION, SLOT_US, WINDOW_S
from tests.live.sources.cameras import HttpCamera, http_camera, wait_for_end

CAMERAS = "/v1/cameras"
NUM_WINDOWS = 12
FPS = 1_000_000 // SLOT_US
WANTED = {
    "stream": "street",
    "window_s": WINDOW_S,
    "question": QUESTION,
    "max_tokens": MAX_TOKENS,
}


def frames(start: int = 0, stop: int = NUM_WINDOWS * NUM_SLOTS) -> Iterator[np.ndarray]:
    """Pictures of a street, each with a patch of its own."""
    from headstart_lab.street import street_video

    drawn = street_video(num_frames=16, width=96, height=64).frames
    for number in range(start, stop):
        frame = drawn[number % len(drawn)].copy()
        patch = np.random.default_rng(number).integers(0, 256, (32, 48, 3), dtype=np.uint8)
        frame[16:48, 24:72] = patch
        yield frame


def write_film(path: Path, start: int = 0, stop: int = NUM_WINDOWS * NUM_SLOTS) -> Path:
    """These pictures, encoded without a loss: the same ones are the same in another file."""
    encode(path, frames(start, stop), fps=FPS, qp="0")
    return path


@contextlib.contextmanager
def film_camera(film: Path, port: int, *, ends: bool = True) -> Iterator[HttpCamera]:
    """A camera that plays a film to each connection, and then ends or falls silent."""
    content = film.read_bytes()

    def script(connection: socket.socket, number: int) -> None:
        length = len(content) if ends else len(content) + 1  # the last byte does not come
        head = f"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: {length}\r\n\r\n"
        connection.sendall(head.encode() + content)
        wait_for_end(connection)

    with http_camera(script, port) as camera:
        yield camera


class AnswerReader:
    """One reader of a camera's events."""

    def __init__(self, client: httpx.Client, id: str, last: int | None = None) -> None:
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        self._closing = contextlib.ExitStack()
        stream = client.stream("GET", f"{CAMERAS}/{id}/answers", headers=headers)
        self.reply = self._closing.enter_context(stream)
        assert self.reply.status_code == 200, self.reply.read()
        self._lines = self.reply.iter_lines()
        self.heard: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The messages, until the server ends the stream."""
        event: dict[str, str] = {}
        for line in self._lines:
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            if "data" in event:
                message = json.loads(event["data"])
                assert event["event"] == message["type"]
                is_answer = message["type"] == "answer"
                assert event.get("id") == (str(message["number"]) if is_answer else None)
                self.heard.append(message)
                yield message
            event = {}

    def wait_for(self, kind: str) -> dict[str, Any]:
        """The next message of this type; an error is none that was waited for."""
        for message in self:
            if message["type"] == kind:
                return message
            assert message["type"] != "error", message
        raise AssertionError(f"the stream ended without {kind}")

    def close(self) -> None:
        self._closing.close()

    def __enter__(self) -> "AnswerReader":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@contextlib.contextmanager
def registered(client: httpx.Client, source: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """A camera that the server reads until the block is left."""
    reply = client.post(CAMERAS, json={**WANTED, "source": source, **fields})
    assert reply.status_code == 201, reply.text
    camera = reply.json()
    assert reply.headers["location"] == f"{CAMERAS}/{camera['id']}"
    try:
        yield camera
    finally:
        client.delete(f"{CAMERAS}/{camera['id']}")
