"""Makes messages of the live protocol for a fuzz: valid values of every field, and rubbish.

maker = LiveMessageMaker(seed=7)
maker.start()                # a valid message
maker.spoiled(maker.ask())   # the same with something wrong

What is made depends on the seed alone; tokens and numbers that only the server knows are handed in.
"""

import io
import json
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import av
import numpy as np
import PIL.Image

from headstart.media.annex_b import Codec
from headstart.media.events import MAX_TIME_US
from headstart_client.wire import EVENT, HEADER, MediaKind
from headstart_lab.street import street_video

Values = Callable[[random.Random], Any]
Message = dict[str, Any]

TOO_LONG_BYTES = 5 << 20
"""More than a server reads of a message by default."""
SENSOR = (96, 64)
ENCODERS = {
    Codec.H264: ("libx264", {"preset": "ultrafast", "bf": "0"}),
    Codec.H265: ("libx265", {"preset": "ultrafast", "x265-params": "bframes=0:log-level=none"}),
}
SIZES = ((96, 64), (64, 48), (1, 1), (333, 77))
ODD_TIMES_US = (-1, -(2**63), 2**63 - 1, MAX_TIME_US, MAX_TIME_US - 1, 0)
ODD_TEXTS = (
    "\n", " ", "\x00", "\U0001f600", "<video>",
    "<image> <video>", "</s><s>USER:", "{{ 7 * 7 }}", "x" * 128, "é" * 100, "Who? " * 60,
)  # fmt: skip
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object"},
    {"type": "object", "properties": {"road": {"enum": ["wet", "dry"]}}, "required": ["road"]},
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 3},
    {"enum": [{"scene": "a bus"}, {"scene": "a car"}]},
    {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
)
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**300, 0.5, -0.0, 1e308, 5e-324, "",
    " ", "x", "7", "\x00", "\ud800", "é" * 300, "A" * 10_000, "../../etc", [], [[]], [None], {},
    {"": {}}, {"type": "start"}, {"$ref": "#"}, {"type": "nothing"}, "1x1", "99999x99999",
)  # fmt: skip
ODD_JSON = (
    "", "null", "[]", "{}", '"start"', "7", "{", '{"type": "start"', '{"type": NaN}', "no json",
    '{"type": "start", "type": "end"}', '{"type": ["start"]}', "\ufeff{}", "[" * 5000,
    '{"a":' * 5000, '{"type": "ack", "number": ' + "9" * 5000 + "}",
)  # fmt: skip


def _one_of(*values: Any) -> Values:
    return lambda dice: dice.choice(values)


_NAMES = _one_of("a", "front", "front", "道路", "\U0001f600" * 20, "\x00/../", "x" * 128)
# Mostly ones that can be asked: a placeholder of a video ends the camera.
_TEXTS = _one_of(*ODD_TEXTS, *["What is happening?", "a", "Straße", "道路"] * 8)
# Short answers, mostly: they take the engine's time.
_NUM_TOKENS = _one_of(*range(1, 9), *range(1, 9), *range(1, 9), 64, 4096)
_SECONDS = _one_of(0.05, 0.5, 2, 86_400)
FIELDS: dict[str, dict[str, Values]] = {
    "start": {
        "stream": _NAMES,
        "window_s": _one_of(0.01, 0.05, 0.1, 0.4, 0.8, 0.8, 2, 86_400),
        "step_s": _one_of(1, 0.5, 0.25, 0.125),  # of the window
        "question": _TEXTS,
        "schema": _one_of(*SCHEMAS),
        "system": _TEXTS,
        "max_tokens": _NUM_TOKENS,
        "when": _one_of("always", "changed"),
        "at_least_s": _SECONDS,
        "simulate_events": _one_of(True, False),
        "sensor": _one_of("96x64", "96x64", "346x260", "1x1", "65536x65536"),
        "codec": _one_of(*map(str, Codec)),
        "previews": _one_of(True, False),
        "compare": _one_of(False, False, False, False, True),
    },
    "resume": {
        "token": _one_of("x", "y" * 128, "\U0001f600", "../../x"),
        "number": _one_of(0, 1, 64, 2**31 - 1),
    },
    "ask": {
        "id": _NAMES,
        "question": _TEXTS,
        "schema": _one_of(*SCHEMAS),
        "max_tokens": _NUM_TOKENS,
    },
    "ack": {"number": _one_of(0, 1, 2, 64, 2**31 - 1)},
    "end": {},
}
"""Of each message what each of its fields may hold, besides its type."""
REQUIRED = {
    "start": ("stream", "window_s"),
    "resume": ("token", "number"),
    "ask": ("id", "question"),
    "ack": ("number",),
    "end": (),
}


@dataclass(frozen=True)
class Sent:
    """One message to send, and what it is counted as."""

    kind: str
    content: str | bytes


class LiveMessageMaker:
    """Makes one message after another from a seed. Used from one thread only."""

    def __init__(self, seed: int | str) -> None:
        self._dice, self._pictures = random.Random(seed), _pictures()
        self._time_us = 0
        self._slot_us = 100_000
        self.has_sensor = False
        """Whether the newest camera sends events."""
        self._codec: Codec | None = None
        """Of the newest camera's pictures, if it sends encoded ones."""
        self._num_encoded = 0

    def start(self) -> Sent:
        """A valid beginning; from here on pictures have the times of its windows."""
        message = self._message("start")
        dice, window_s = self._dice, message["window_s"]
        if "step_s" in message:
            message["step_s"] = message["step_s"] * window_s
        if dice.random() < 0.9:
            message.setdefault("question", "What is happening?")
        if "question" not in message:
            for name in ("schema", "previews", "compare"):
                message.pop(name, None)
        if message.get("simulate_events"):
            message.pop("sensor", None)
        if message.get("when") == "changed" and "sensor" not in message:
            message["simulate_events"] = True
        if message.get("when") != "changed":
            message.pop("at_least_s", None)
        self._time_us, self._slot_us = dice.choice((0, 10**6, 10**15)), round(window_s * 125_000)
        self.has_sensor = "sensor" in message
        self._codec, self._num_encoded = message.get("codec") and Codec(message["codec"]), 0
        return Sent("start", json.dumps(message))

    def resume(self, token: str | None, number: int) -> Sent:
        """With the token of a camera, if there is one, and the number that has arrived."""
        message = self._message("resume")
        if token is not None:
            message |= {"token": token, "number": number}
        return Sent("resume", json.dumps(message))

    def ack(self, number: int) -> Sent:
        """Of the number that has arrived, or of an older one."""
        number -= self._dice.choice((0, 0, 0, 0, 1, 64))
        return Sent("ack", json.dumps({"type": "ack", "number": max(0, number)}))

    def ack_of_the_future(self, number: int) -> Sent:
        """Of a number that was not given yet."""
        number += self._dice.choice((1, 1000, 2**31 - 2**20))
        return Sent("ack of the future", json.dumps({"type": "ack", "number": number}))

    def ask(self) -> Sent:
        """A valid question."""
        return Sent("ask", json.dumps(self._message("ask")))

    def end(self) -> Sent:
        """No more pictures come."""
        return Sent("end", '{"type": "end"}')

    def picture(self) -> Sent:
        """A picture that can be read, of the next time."""
        self._time_us += self._dice.choice((1, 1, 1, 1, 2, 9)) * max(1, self._slot_us)
        time_us = min(self._time_us, MAX_TIME_US - 1)
        if self._codec is not None:
            packets = _packets(self._codec)
            packet = packets[self._num_encoded % len(packets)]
            self._num_encoded += 1
            return Sent("encoded picture", _pack(MediaKind.ENCODED, time_us, packet))
        # Mostly of one size, without which no window is filled.
        number = 0 if self._dice.random() < 0.8 else self._dice.randrange(len(self._pictures))
        return Sent("picture", _pack(MediaKind.PICTURE, time_us, self._pictures[number]))

    def odd_picture(self) -> Sent:
        """A picture that cannot be read, or one of an odd time."""
        dice, good, kind = self._dice, self._dice.choice(self._pictures), MediaKind.PICTURE
        if self._codec is not None and dice.random() < 0.9:  # or else of the other kind
            good, kind = dice.choice(_packets(self._codec)), MediaKind.ENCODED
        if dice.random() < 0.3:
            time_us = dice.choice((self._time_us, self._time_us - 1, *ODD_TIMES_US))
            return Sent("picture of an odd time", _pack(kind, time_us, good))
        self._time_us += max(1, self._slot_us)
        damaged = bytearray(good)
        for _ in range(20):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        payload = dice.choice(
            (
                good[: dice.randrange(len(good))],
                bytes(damaged),
                b"\xff\xd8\xff" + dice.randbytes(500),
                b"GIF89a" + dice.randbytes(100),
                b"\x89PNG\r\n\x1a\n" + dice.randbytes(64),
                b"RIFF\x00\x00\x00\x00WEBPVP8 " + dice.randbytes(64),
                _vast_png(),
                b"\x00\x00\x01" + dice.randbytes(500),
                dice.randbytes(1000),
            )
        )
        return Sent("unreadable picture", _pack(kind, self._time_us, payload))

    def events(self) -> Sent:
        """Events of the time until the next picture; sometimes ones that cannot be read."""
        dice, rows = self._dice, np.zeros(self._dice.choice((0, 1, 50, 2000)), EVENT)
        rows["t"] = np.sort(dice.choice((self._time_us, 0, -5)) + np.arange(len(rows)))
        rows["x"], rows["y"] = np.arange(len(rows)) % SENSOR[0], np.arange(len(rows)) % SENSOR[1]
        rows["p"] = dice.choice((0, 1, 1, 2))
        payload = rows.tobytes()[: -1 if dice.random() < 0.1 else None]
        return Sent("events", _pack(MediaKind.EVENTS, self._time_us, payload))

    def rubbish(self) -> Sent:
        """Something that is no message."""
        dice = self._dice
        match dice.randrange(6):
            case 0:
                return Sent("odd JSON", dice.choice(ODD_JSON))
            case 1:
                return Sent("random text", dice.randbytes(dice.randrange(300)).decode("latin-1"))
            case 2:
                return Sent("random bytes", dice.randbytes(dice.choice((0, 1, 8, 9, 10, 4000))))
            case 3:
                kind = dice.choice((0, 4, 255))
                return Sent("unknown kind", _pack(kind, self._time_us, dice.randbytes(100)))
            case 4:
                vast = _pack(MediaKind.PICTURE, self._time_us, bytes(TOO_LONG_BYTES))
                return Sent("message too long to be read", vast)
            case _:
                long = json.dumps({"type": "ask", "id": "a", "question": "x" * 700_000})
                return Sent("long text", long)

    def spoiled(self, sent: Sent) -> Sent:
        """A message with one thing wrong."""
        dice, content = self._dice, sent.content
        if isinstance(content, bytes):
            return Sent(f"{sent.kind}, cut", content[: dice.randrange(12)])
        message = json.loads(content)
        match dice.randrange(6):
            case 0 | 1 | 2:
                message[dice.choice(sorted(message))] = dice.choice(ODD)
            case 3:
                message[dice.choice(("priority", "", "x" * 500, "tenant"))] = dice.choice(ODD)
            case 4:
                del message[dice.choice(sorted(message))]
            case _:
                return Sent(f"{sent.kind}, cut", content[: dice.randrange(len(content))])
        return Sent(f"{sent.kind}, odd", json.dumps(message))

    def _message(self, kind: str) -> Message:
        dice, fields, required = self._dice, FIELDS[kind], REQUIRED[kind]
        optional = [name for name in fields if name not in required]
        chosen = dice.sample(optional, dice.randint(0, min(5, len(optional))))
        made = {name: fields[name](dice) for name in (*required, *chosen)}
        return {"type": kind, **made}


def _pack(kind: int, time_us: int, payload: bytes) -> bytes:
    return HEADER.pack(kind, time_us) + payload


@cache
def _packets(codec: Codec) -> list[bytes]:
    """A key picture, and others that build on it."""
    name, options = ENCODERS[codec]
    context = av.CodecContext.create(name, "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height, context.pix_fmt = *SENSOR, "yuv420p"
    context.time_base, context.gop_size, context.options = Fraction(1, 25), 1000, options
    drawn = street_video(num_frames=16, width=SENSOR[0], height=SENSOR[1]).frames[:8]
    packets: list[av.Packet] = []
    for number, pixels in enumerate(drawn):
        picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        picture.pts = number
        packets += context.encode(picture)
    return [bytes(packet) for packet in (*packets, *context.encode(None))]


@cache
def _pictures() -> tuple[bytes, ...]:
    """A picture of each size in each format, the first one an ordinary JPEG."""
    made, dice = [], random.Random(0)
    for size in SIZES:
        pixels = np.frombuffer(dice.randbytes(size[0] * size[1] * 3), np.uint8)
        image = PIL.Image.fromarray(pixels.reshape(size[1], size[0], 3))
        for form in ("JPEG", "PNG", "WEBP"):
            content = io.BytesIO()
            image.save(content, form)
            made.append(content.getvalue())
    return tuple(made)


def _vast_png() -> bytes:
    """The header of a PNG whose pixels would fill the memory."""
    header = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + bytes(40)


def known_fields() -> Mapping[str, frozenset[str]]:
    """The fields that are made, to compare with those that the server knows."""
    return {kind: frozenset({"type", *fields}) for kind, fields in FIELDS.items()}
