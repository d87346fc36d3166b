"""A camera's end of a live socket, message by message."""

import base64
import contextlib
import io
import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import PIL.Image

from headstart_client.wire import PATH, SUBPROTOCOL, Media, MediaKind
from rig.servers import CHAT, MODEL, Server

NUM_SLOTS = 8
SLOT_US = 100_000
WINDOW_S = NUM_SLOTS * SLOT_US / 1e6
QUESTION = "What is happening?"
MAX_TOKENS = 24
START = {
    "type": "start",
    "stream": "front",
    "window_s": WINDOW_S,
    "question": QUESTION,
    "max_tokens": MAX_TOKENS,
}
WAIT_S = 120.0


def jpegs(count: int, seed: int = 0) -> list[bytes]:
    """Pictures of a street, each with a patch of its own."""
    from headstart_lab.street import street_video

    random = np.random.default_rng(seed)
    frames = street_video(num_frames=16, width=96, height=64).frames
    made = []
    for number in range(count):
        frame = frames[number % len(frames)].copy()
        frame[16:48, 24:72] = random.integers(0, 256, (32, 48, 3), dtype=np.uint8)
        content = io.BytesIO()
        PIL.Image.fromarray(frame).save(content, "JPEG", quality=90)
        made.append(content.getvalue())
    return made


class LiveCamera:
    """One connection. `cut` breaks it as a lost network does."""

    def __init__(self, server: Server, key: str = "key-north", **options: Any) -> None:
        from websockets.sync.client import connect

        options.setdefault("subprotocols", [SUBPROTOCOL])
        if key:
            options.setdefault("additional_headers", {"Authorization": f"Bearer {key}"})
        address = f"ws://127.0.0.1:{server.port}{PATH}"
        self.socket = connect(address, compression=None, proxy=None, **options)
        self.heard: list[dict[str, Any]] = []

    def say(self, message: dict[str, Any]) -> None:
        self.socket.send(json.dumps(message))

    def show(self, picture: bytes, time_us: int) -> None:
        self.socket.send(Media(MediaKind.PICTURE, time_us, picture).pack())

    def show_window(self, pictures: list[bytes], number: int) -> None:
        """All frames of a window, the first of which began at 0."""
        for slot, picture in enumerate(pictures):
            self.show(picture, (number * NUM_SLOTS + slot) * SLOT_US)

    def hear(self) -> dict[str, Any]:
        message = json.loads(self.socket.recv(timeout=WAIT_S))
        self.heard.append(message)
        return message

    def wait_for(self, kind: str) -> dict[str, Any]:
        """The next message of this type; an error is none that was waited for."""
        while (message := self.hear())["type"] != kind:
            assert message["type"] != "error" or kind == "error", message
        return message

    def start(self, **fields: Any) -> dict[str, Any]:
        self.say({**START, **fields})
        return self.wait_for("started")

    def ack(self, answer: dict[str, Any]) -> None:
        self.say({"type": "ack", "number": answer["number"]})

    def rest(self) -> tuple[list[dict[str, Any]], int]:
        """All that still comes, and the code with which the server closes."""
        from websockets.exceptions import ConnectionClosed

        before = len(self.heard)
        try:
            while True:
                self.hear()
        except ConnectionClosed:
            return self.heard[before:], int(self.socket.close_code or 0)

    def rest_without_words(self) -> tuple[list[dict[str, Any]], int]:
        """All that still comes, but the words of answers and the counts on the way."""
        rest, code = self.rest()
        words = ("preview", "confirmed", "retracted")
        told = [message for message in rest if message["type"] not in words]
        return [m for m in told[:-2] if m["type"] != "counts"] + told[-2:], code

    def cut(self) -> None:
        """Reset the TCP connection: neither side says goodbye."""
        raw = self.socket.socket
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.shutdown(socket.SHUT_RD)  # wakes the reader, whose close sends the reset
        raw.close()

    def leave(self) -> None:
        """End the camera as a client does that wants no more, so that the next test has room."""
        from websockets.exceptions import ConnectionClosed

        numbers = [answer.get("number", 0) for answer in answers_of(self.heard)]
        with contextlib.suppress(ConnectionClosed, OSError):
            if numbers:
                self.say({"type": "ack", "number": max(numbers)})
            self.say({"type": "end"})
            while (message := self.hear())["type"] != "ended":
                if message["type"] == "answer" and "number" in message:
                    self.ack(message)
        self.socket.close()

    def __enter__(self) -> "LiveCamera":
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is None:
            self.leave()
        self.socket.close()


def said_over_http(
    server: Server, pictures: list[bytes], question: str = QUESTION, max_tokens: int = MAX_TOKENS
) -> str:
    """What the target says of the same pictures as one clip, decoded by the same decoder."""
    url = "data:video/jpeg;base64," + ",".join(base64.b64encode(one).decode() for one in pictures)
    content = [
        {"type": "video_url", "video_url": {"url": url}},
        {"type": "text", "text": question},
    ]
    reply = server.client().post(
        CHAT,
        json={
            "model": MODEL,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": max_tokens,
            "temperature": 0,
        },
    )
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


def answers_of(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (message for message in messages if message["type"] == "answer")
