"""From a stranger's bytes to frames, pictures and events, by the sandbox's workers.

What a worker hands over is checked here again: it has seen the stranger's bytes.
"""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart.sandbox.pool import Job, Pool
from headstart.sandbox.vllm_media import Bounds
from headstart.sandbox.worker import Worker
from headstart.serve.fetching import EventPart, Fetched
from headstart.serve.refusal import bad_request
from headstart.serve.settings import Limits

MAX_KNOWN_GRAMMARS = 1024
LEAST_DECODE_S = 4.0
DECODED_BYTES_PER_S = 1 << 20
"""A small file that takes long is damaged or meant to; it gets less time than a large one."""
_MODES = {"RGB": 3, "RGBA": 4, "L": 1, "LA": 2}
_PNG = b"\x89PNG\r\n\x1a\n"
Told = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class DecodedVideo:
    """Frames as vLLM samples them, and what its processors are told of them."""

    frames: NDArray[np.uint8]
    told: dict[str, Any]

    @property
    def num_bytes(self) -> int:
        """In memory."""
        return self.frames.nbytes


@dataclass(frozen=True)
class DecodedPicture:
    """A picture as vLLM reads it."""

    image: Image.Image
    num_bytes: int


class Decoding:
    """Used from one event loop only."""

    def __init__(self, pool: Pool, limits: Limits) -> None:
        self._pool = pool
        self._limits = limits
        self._bounds = Bounds(
            limits.max_frame_pixels, limits.max_clip_pixels, float(limits.max_video_s)
        )
        self._known_grammars: OrderedDict[bytes, None] = OrderedDict()

    @property
    def is_up(self) -> bool:
        """Whether there are workers."""
        return self._pool.is_up

    async def video(self, tenant: str, fetched: Fetched) -> DecodedVideo:
        """Raises a refusal if it is none, or one too large."""
        asked = {"job": "video", "bounds": asdict(self._bounds), "is_jpegs": fetched.is_jpegs}
        return await self._done(tenant, asked, fetched.content, self._read_video, "the video")

    async def picture(self, tenant: str, fetched: Fetched) -> DecodedPicture:
        """Raises a refusal if it is none, or one too large."""
        asked = {"job": "picture", "bounds": asdict(self._bounds)}
        return await self._done(tenant, asked, fetched.content, self._read_picture, "the picture")

    async def events(self, tenant: str, fetched: Fetched, part: EventPart) -> Events:
        """A window of a recording."""
        asked = {"job": "events", **self._window(fetched, part)}
        return await self._done(tenant, asked, fetched.content, self._read_events, "the events")

    async def film(self, tenant: str, fetched: Fetched) -> bytes:
        """A recording as a PNG."""
        asked = {"job": "film", **self._window(fetched, EventPart("", None, None, None, ""))}
        return await self._done(tenant, asked, fetched.content, _read_film, "the events")

    async def check_grammar(self, tenant: str, grammar: str) -> None:
        """Raises a refusal if it is none, or takes too long to compile."""
        name = hashlib.sha256(grammar.encode()).digest()
        if name in self._known_grammars:
            self._known_grammars.move_to_end(name)
            return
        job = Job({"job": "grammar"}, grammar.encode(), _nothing, self._limits.grammar_s)
        await self._refused(tenant, job, "the grammar of the answer")
        self._known_grammars[name] = None
        while len(self._known_grammars) > MAX_KNOWN_GRAMMARS:
            self._known_grammars.popitem(last=False)

    async def _done(
        self,
        tenant: str,
        asked: Told,
        content: bytes,
        read: Callable[[Told, Worker], T],
        what: str,
    ) -> T:
        deadline_s = min(self._limits.decode_s, LEAST_DECODE_S + len(content) / DECODED_BYTES_PER_S)
        return await self._refused(tenant, Job(asked, content, read, deadline_s), what)

    async def _refused(self, tenant: str, job: Job[T], what: str) -> T:
        try:
            return await self._pool.do(tenant, job)
        except MediaError as error:
            raise bad_request(f"{what} cannot be read: {error}") from error

    def _window(self, fetched: Fetched, part: EventPart) -> dict[str, Any]:
        return {
            "start_us": part.start_us,
            "stop_us": part.stop_us,
            "sensor": str(part.sensor) if part.sensor else None,
            "suffix": fetched.suffix,
            "max_events": self._limits.max_events,
            "max_window_us": self._limits.max_window_us,
            "max_frame_pixels": self._limits.max_frame_pixels,
        }

    def _read_video(self, told: Told, worker: Worker) -> DecodedVideo:
        shape = tuple(_whole(side) for side in told["shape"])
        if len(shape) != 4 or shape[3] != 3 or 0 in shape:
            raise ValueError("frames are [n, height, width, 3]")
        self._bounds.check_clip(*shape[:3])
        frames = np.frombuffer(worker.taken(0, math.prod(shape)), np.uint8).reshape(shape)
        return DecodedVideo(frames, _plain_table(told["told"]))

    def _read_picture(self, told: Told, worker: Worker) -> DecodedPicture:
        width, height = (_whole(side) for side in told["size"])
        self._bounds.check_frame(width, height)
        num_bytes = width * height * _MODES[told["mode"]]
        pixels = worker.taken(0, num_bytes)
        image = Image.frombuffer(told["mode"], (width, height), pixels, "raw", told["mode"], 0, 1)
        return DecodedPicture(image, num_bytes)

    def _read_events(self, told: Told, worker: Worker) -> Events:
        count = _whole(told["num_events"])
        if count > self._limits.max_events:
            raise ValueError("more events than were asked for")
        sensor = SensorSize(*(_whole(side) for side in told["sensor"]))
        columns, start = [], 0
        for dtype in (np.int64, np.uint16, np.uint16, np.uint8):
            num_bytes = count * np.dtype(dtype).itemsize
            columns.append(np.frombuffer(worker.taken(start, num_bytes), dtype))
            start += num_bytes
        t, x, y, p = columns
        return Events.checked(x, y, t, p, sensor)


def max_output_bytes(limits: Limits) -> int:
    """The most that a job may write: all frames of a video, or all events of a window."""
    return max(3 * limits.max_clip_pixels, 4 * limits.max_frame_pixels, 13 * limits.max_events)


def _read_film(told: Told, worker: Worker) -> bytes:
    picture = bytes(worker.taken(0, _whole(told["num_bytes"])))
    if not picture.startswith(_PNG):
        raise ValueError("a film is a PNG")
    return picture


def _nothing(_told: Told, _worker: Worker) -> None:
    return None


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a worker tells sizes as whole numbers")
    return value


def _plain_table(given: object) -> dict[str, Any]:
    """What is told of a video: numbers, short texts and lists of numbers by name."""
    if not isinstance(given, dict) or len(given) > 32:
        raise ValueError("what is told of a video is a small table")
    for value in given.values():
        numbers = value if isinstance(value, list) else [value]
        for number in numbers:
            if isinstance(number, str) and len(number) > 64:
                raise ValueError("a text told of a video is short")
            if not isinstance(number, bool | int | float | str | None):
                raise ValueError("what is told of a video is numbers and texts")
    return given
