"""Has the sandbox's workers decode the bytes of requests into frames, pictures and events.

Results are checked again here: untrusted bytes may have taken over the worker that made them.
"""

import hashlib
import logging
import math
import os
import resource
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.errors import MediaError
from headstart.live.sources.confined.confinement import ResourceLimits, has_filter
from headstart.media.annex_b import Codec
from headstart.media.events import Events, SensorSize
from headstart.media.video import FORMATS
from headstart_server.limits import Limits
from headstart_server.media.fetcher import EventPart, Fetched
from headstart_server.refusal import bad_request
from headstart_server.sandbox.pool import FairQueue, Job, Lease, Pool
from headstart_server.sandbox.vllm_media import Bounds
from headstart_server.sandbox.worker import MAX_CPU_S, BufferSizes, Worker
from headstart_server.settings_table import SettingsError

_log = logging.getLogger("headstart")

MAX_CHECKED_GRAMMARS = 256
"""Of a tenant: each has a table of its own, so that the time of a check says nothing of others'."""
MIN_DECODE_S = 4.0
DECODED_BYTES_PER_S = 1 << 20
"""Small files get less processor time: one that takes much is damaged or an attack."""
STREAM_BYTES, STREAM_BYTES_PER_PIXEL = 64 << 20, 48
"""Memory of a process that decodes a stream: H.264 and H.265 build on up to 16 pictures, and in the
usual kinds of them a pixel takes up to 3 bytes."""
_MODES = {"RGB": 3, "RGBA": 4, "L": 1, "LA": 2}
_PNG = b"\x89PNG\r\n\x1a\n"
Result = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class DecodedVideo:
    """The frames that vLLM would sample, and the metadata for its processors."""

    frames: NDArray[np.uint8]
    metadata: dict[str, Any]

    @property
    def num_bytes(self) -> int:
        return self.frames.nbytes


@dataclass(frozen=True)
class DecodedPicture:
    """A picture as vLLM would read it."""

    image: Image.Image
    num_bytes: int


class MediaDecoder:
    """Used from one event loop only."""

    def __init__(self, pool: Pool, limits: Limits) -> None:
        self._pool = pool
        self._limits = limits
        self._bounds = Bounds(
            limits.max_frame_pixels, limits.max_clip_pixels, float(limits.max_video_s)
        )
        self._checked_grammars: defaultdict[str, OrderedDict[bytes, None]]
        self._checked_grammars = defaultdict(OrderedDict)

    @property
    def is_up(self) -> bool:
        return self._pool.is_up

    async def video(self, tenant: str, fetched: Fetched) -> DecodedVideo:
        """Decode a video; raises a refusal if it is none or too large."""
        request = {"job": "video", "bounds": asdict(self._bounds), "is_jpegs": fetched.is_jpegs}
        return await self._decode(tenant, request, fetched.content, self._read_video, "the video")

    async def picture(self, tenant: str, fetched: Fetched) -> DecodedPicture:
        """Decode a picture; raises a refusal if it is none or too large."""
        request = {"job": "picture", "bounds": asdict(self._bounds)}
        return await self._decode(
            tenant, request, fetched.content, self._read_picture, "the picture"
        )

    def lease(self, tenant: str) -> Lease:
        """For the encoded pictures of one camera, each of which builds on those before."""
        pixels = self._limits.max_frame_pixels
        most = min(self._limits.decoder_bytes, STREAM_BYTES + STREAM_BYTES_PER_PIXEL * pixels)
        return Lease(
            self._pool,
            tenant,
            BufferSizes(self._limits.max_live_message_bytes, 3 * pixels),
            # A stream may be decoded for weeks; each picture of it is bounded.
            ResourceLimits(cpu_s=resource.RLIM_INFINITY, memory_bytes=most),
        )

    async def encoded_picture(
        self, lease: Lease, codec: Codec, content: bytes, *, begins: bool
    ) -> DecodedPicture:
        """Decode the next picture of a stream, which may begin anew with it."""
        request = {
            "job": "packet",
            "codec": codec,
            "begins": begins,
            "max_pixels": self._limits.max_frame_pixels,
        }
        job = self._job(request, content, self._read_picture)
        return await _or_refused(lease.run(job, begins=begins), "the encoded picture")

    async def events(self, tenant: str, fetched: Fetched, part: EventPart) -> Events:
        request = {"job": "events", **self._window(fetched, part)}
        return await self._decode(tenant, request, fetched.content, self._read_events, "the events")

    async def filmstrip(self, tenant: str, fetched: Fetched) -> bytes:
        """Draw a recording as one PNG."""
        request = {"job": "filmstrip", **self._window(fetched, EventPart(""))}
        return await self._decode(tenant, request, fetched.content, _read_filmstrip, "the events")

    async def check_grammar(self, tenant: str, grammar: str) -> None:
        """Raise a refusal if a grammar is none, or takes too long to compile."""
        name = hashlib.sha256(grammar.encode()).digest()
        checked = self._checked_grammars[tenant]
        if name in checked:
            checked.move_to_end(name)
            return
        job = Job({"job": "grammar"}, grammar.encode(), lambda *_: None, self._limits.grammar_s)
        await _or_refused(self._pool.run(tenant, job), "the grammar of the answer")
        checked[name] = None
        if len(checked) > MAX_CHECKED_GRAMMARS:
            checked.popitem(last=False)

    async def _decode(
        self,
        tenant: str,
        request: Mapping[str, Any],
        content: bytes,
        read: Callable[[Result, Worker], T],
        what: str,
    ) -> T:
        return await _or_refused(self._pool.run(tenant, self._job(request, content, read)), what)

    def _job(
        self, request: Mapping[str, Any], content: bytes, read: Callable[[Result, Worker], T]
    ) -> Job[T]:
        cpu_s = min(self._limits.decode_s, MIN_DECODE_S + len(content) / DECODED_BYTES_PER_S)
        return Job(request, content, read, cpu_s)

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

    def _read_video(self, result: Result, worker: Worker) -> DecodedVideo:
        shape = tuple(_whole(side) for side in result["shape"])
        if len(shape) != 4 or shape[3] != 3 or 0 in shape:
            raise ValueError("frames are [n, height, width, 3]")
        self._bounds.check_clip(*shape[:3])
        frames = np.frombuffer(worker.copy_output(0, math.prod(shape)), np.uint8).reshape(shape)
        return DecodedVideo(frames, _plain_metadata(result["metadata"]))

    def _read_picture(self, result: Result, worker: Worker) -> DecodedPicture:
        width, height = (_whole(side) for side in result["size"])
        self._bounds.check_frame(width, height)
        num_bytes = width * height * _MODES[result["mode"]]
        pixels = worker.copy_output(0, num_bytes)
        image = Image.frombuffer(
            result["mode"], (width, height), pixels, "raw", result["mode"], 0, 1
        )
        return DecodedPicture(image, num_bytes)

    def _read_events(self, result: Result, worker: Worker) -> Events:
        count = _whole(result["num_events"])
        if count > self._limits.max_events:
            raise ValueError("more events than were asked for")
        sensor = SensorSize(*(_whole(side) for side in result["sensor"]))
        columns, start = [], 0
        for dtype in (np.int64, np.uint16, np.uint16, np.uint8):
            num_bytes = count * np.dtype(dtype).itemsize
            columns.append(np.frombuffer(worker.copy_output(start, num_bytes), dtype))
            start += num_bytes
        t, x, y, p = columns
        return Events.checked(x, y, t, p, sensor)


def max_output_bytes(limits: Limits) -> int:
    """The most that a job may write: all frames of a video, or all events of a window."""
    return max(3 * limits.max_clip_pixels, 4 * limits.max_frame_pixels, 13 * limits.max_events)


async def _or_refused(decoding: Awaitable[T], what: str) -> T:
    try:
        return await decoding
    except MediaError as error:
        raise bad_request(f"{what} cannot be read: {error}") from error


def _read_filmstrip(result: Result, worker: Worker) -> bytes:
    picture = bytes(worker.copy_output(0, _whole(result["num_bytes"])))
    if not picture.startswith(_PNG):
        raise ValueError("a filmstrip is a PNG")
    return picture


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a worker's sizes are whole numbers")
    return value


def _plain_metadata(given: object) -> dict[str, Any]:
    """Check that a video's metadata are numbers, short texts and lists of numbers by name."""
    if not isinstance(given, dict) or len(given) > 32:
        raise ValueError("a video's metadata are a small table")
    for value in given.values():
        numbers = value if isinstance(value, list) else [value]
        for number in numbers:
            if isinstance(number, str) and len(number) > 64:
                raise ValueError("a text in a video's metadata is short")
            if not isinstance(number, bool | int | float | str | None):
                raise ValueError("a video's metadata are numbers and texts")
    return given


def decoder_pool(limits: Limits, model_config: Any, tokenizer: Any, is_open: bool) -> Pool:
    """A pool, not yet started, that decodes media as vLLM would for this model."""
    from vllm.multimodal.video import VIDEO_LOADER_REGISTRY
    from vllm.multimodal.video import get_video_loader_backend_for_processor as loader_for
    from vllm.transformers_utils.processor import get_video_processor_cls_name

    if not has_filter():
        _log.warning(
            "decoders run without a seccomp filter, which headstart has for Linux on x86-64 and"
            " ARM64 only; limits on files, memory and time hold"
        )
    multimodal = model_config.multimodal_config
    options = dict(multimodal.media_io_kwargs or {}) if multimodal is not None else {}
    video = dict(options.get("video", {}))
    if multimodal is not None:
        usual = loader_for(get_video_processor_cls_name(model_config))
        video = {**({"video_backend": usual} if usual else {}), **video}
    for name in (video.get("video_backend"), video.get("backend")):
        if name and VIDEO_LOADER_REGISTRY.backend_requires_gpu(name):
            raise SettingsError(
                f"{name} decodes on a GPU, which no confined process can reach; take it out of"
                " media_io_kwargs"
            )
    # One tenant occupies at most half of the workers, unless all clients are one tenant.
    max_of_tenant = limits.max_decoders if is_open else max(1, limits.max_decoders // 2)
    return Pool(
        {
            "media_io_kwargs": {**options, "video": video},
            "vocabulary": _vocabulary(model_config, tokenizer),
        },
        environment(limits),
        FairQueue(limits.max_decoders, max_of_tenant),
        BufferSizes(
            max(limits.max_body_bytes, limits.max_media_file_bytes), max_output_bytes(limits)
        ),
        ResourceLimits(
            cpu_s=math.ceil((2 * limits.decode_s + MAX_CPU_S) * (os.cpu_count() or 1)),
            memory_bytes=limits.decoder_bytes,
            has_threads=True,  # FFmpeg decodes a file with several
        ),
    )


def environment(limits: Limits) -> dict[str, str]:
    """Variables for OpenCV and vLLM; FFmpeg reads only containers that hold their own frames."""
    formats = ",".join(FORMATS)
    return {
        "OPENCV_FFMPEG_CAPTURE_OPTIONS": f"format_whitelist;{formats}|protocol_whitelist;file",
        "OPENCV_LOG_LEVEL": "SILENT",
        "VLLM_MAX_IMAGE_PIXELS": str(limits.max_frame_pixels),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
    }


def _vocabulary(model_config: Any, tokenizer: Any) -> str | None:
    """For compiling grammars as the engine will; none where xgrammar cannot read the tokenizer."""
    try:
        from xgrammar import TokenizerInfo

        info = TokenizerInfo.from_huggingface(tokenizer, vocab_size=model_config.get_vocab_size())
        return str(info.serialize_json())
    except Exception as error:
        _log.warning("grammars are bounded by size only, not by time: %s", error)
        return None
