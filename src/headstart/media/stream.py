"""Decodes video as it arrives: a stream's bytes, a webcam's pictures, or encoded ones one by one.

Beside `video` the only module that uses PyAV.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import av
import numpy as np
from av.codec.context import Flags
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.annex_b import Codec
from headstart.media.video import FORMATS

TimedFrame = tuple[int | None, NDArray[np.uint8]]
"""A frame and its time in us from the first one; None where the stream states no times."""

_CODEC_NAMES = {Codec.H264: "h264", Codec.H265: "hevc"}
_WITHOUT_TIMES = ("mpjpeg", "mjpeg", "h264", "hevc")
"""Formats that state no times: FFmpeg would make them up."""
_STREAM_FORMATS = (*FORMATS, *_WITHOUT_TIMES)
_MAX_DAMAGED = 250
"""So many packets in a row that cannot be decoded are no video any more."""
_OPEN_OPTIONS = {
    "format_whitelist": ",".join(_STREAM_FORMATS),
    "protocol_whitelist": "",
    # FFmpeg reads ahead to guess the frame rate; a camera's pictures are wanted at once.
    "fpsprobesize": "0",
    "analyzeduration": "1000000",
}


class Readable(Protocol):
    """What bytes are read from. An empty answer is the end."""

    def read(self, num_bytes: int, /) -> bytes:
        """At most so many bytes; blocks until there are some."""


@dataclass(frozen=True)
class StreamBounds:
    """What is taken of a stream. Frames above the rate are left out before they cost much."""

    max_pixels: int = 4096 * 2304
    max_fps: float = 60.0

    def check(self, width: int, height: int) -> None:
        if width * height > self.max_pixels:
            raise MediaError(
                f"its pictures are {width}x{height}, and {self.max_pixels} pixels are taken at"
                " most; set the camera to a smaller picture"
            )


def decode_stream(content: Readable, bounds: StreamBounds) -> Iterator[TimedFrame]:
    """Decode frames from bytes as they come; packets that are damaged are passed over."""
    try:
        container = av.open(content, options=_OPEN_OPTIONS, buffer_size=1 << 15)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"that is no video FFmpeg can read as a stream ({_reason(error)}); give the address of"
            " the stream itself, not of a page or a playlist"
        ) from error
    with closing(container):
        yield from _frames(container, bounds)


def read_webcam(device: str, bounds: StreamBounds) -> Iterator[TimedFrame]:
    """Decode frames of a V4L2 device, such as ``/dev/video0``."""
    try:
        container = av.open(device, format="video4linux2,v4l2")
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"{device} cannot be opened as a camera ({_reason(error)}); check that it is plugged"
            " in, that no other program uses it, and that you may read it (group `video`)"
        ) from error
    with closing(container):
        yield from _frames(container, bounds)


def _frames(container: av.container.InputContainer, bounds: StreamBounds) -> Iterator[TimedFrame]:
    if not container.streams.video:
        raise MediaError("there is no video in it; give the address of a stream with video")
    stream = container.streams.video[0]
    bounds.check(stream.codec_context.width, stream.codec_context.height)
    # Threads would hold back as many frames as there are threads.
    stream.codec_context.options = {"max_pixels": str(bounds.max_pixels), "threads": "1"}
    rate = _Rate(bounds.max_fps, states_times=container.format.name not in _WITHOUT_TIMES)
    for frame in _decoded(container, stream, rate):
        time_us, now_us = rate.times_of(frame)
        if rate.leaves_out(now_us):
            continue
        bounds.check(frame.width, frame.height)
        rate.take(now_us)
        yield time_us, _rgb_of(frame)


class _Rate:
    """Which frames are taken, by their times."""

    def __init__(self, max_fps: float, *, states_times: bool) -> None:
        self._least_us = round(900_000 / max_fps)  # cameras are not exact
        self._states_times = states_times
        self._first_us: int | None = None
        self._due_us = -1

    def times_of(self, of: av.VideoFrame | av.Packet) -> tuple[int | None, int]:
        """The time that is stated, from the first frame on, and the one that counts here."""
        if not self._states_times or of.pts is None or not of.time_base:
            return None, time.monotonic_ns() // 1000
        stated_us = round(of.pts * of.time_base * 1_000_000)
        if self._first_us is None:
            if isinstance(of, av.Packet):
                return 0, 0  # nothing is left out before the first frame
            self._first_us = stated_us
        return stated_us - self._first_us, stated_us - self._first_us

    def leaves_out(self, now_us: int) -> bool:
        # Further back is a jump of the camera's clock.
        return 0 < self._due_us - now_us <= 1_000_000

    def take(self, now_us: int) -> None:
        self._due_us = now_us + self._least_us


def _decoded(
    container: av.container.InputContainer, stream: av.VideoStream, rate: _Rate
) -> Iterator[av.VideoFrame]:
    context, num_damaged = stream.codec_context, 0
    try:
        for packet in container.demux(stream):
            is_left_out = bool(packet.size) and rate.leaves_out(rate.times_of(packet)[1])
            if is_left_out and context.codec.intra_only:
                continue  # no other picture needs it
            # Of the others FFmpeg decodes those that pictures to come are made from.
            context.skip_frame = "NONREF" if is_left_out else "DEFAULT"
            try:
                frames = packet.decode()
            except av.InvalidDataError:
                num_damaged += 1
                if num_damaged > _MAX_DAMAGED:
                    raise
            else:
                num_damaged = 0 if frames else num_damaged
                yield from frames
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(f"it cannot be decoded any further ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class PacketDecoder:
    """Decodes a camera's encoded pictures, from a key picture on, each as soon as it is there."""

    def __init__(self, codec: Codec, max_pixels: int) -> None:
        self._max_pixels = max_pixels
        self._context = av.CodecContext.create(_CODEC_NAMES[codec], "r")
        assert isinstance(self._context, av.VideoCodecContext)
        self._context.flags |= Flags.low_delay
        self._context.thread_count = 1  # of many cameras each gets one processor at most
        # FFmpeg counts the edges that it adds; `decode` checks the picture itself.
        self._context.options = {"max_pixels": str(2 * max_pixels + (1 << 16))}

    def decode(self, packet: bytes) -> NDArray[np.uint8]:
        """The picture as RGB [height, width, 3]. Raises `MediaError`."""
        try:
            frames = self._context.decode(av.Packet(packet))
        except (av.FFmpegError, ValueError) as error:
            raise MediaError(
                "it is damaged, it builds on a picture that was not sent, or it has more than"
                f" {self._max_pixels} pixels ({_reason(error)})"
            ) from error
        if len(frames) != 1 or not isinstance(frames[0], av.VideoFrame):
            raise MediaError(
                f"{len(frames)} pictures came out of it at once, not 1; send one whole picture in"
                " each message, and encode without B-frames"
            )
        (frame,) = frames
        if frame.is_corrupt:  # FFmpeg has painted over what is missing
            raise MediaError("a part of it is missing")
        if frame.width * frame.height > self._max_pixels:
            raise MediaError(f"a frame may have {self._max_pixels} pixels at most")
        return _rgb_of(frame)


def _rgb_of(frame: av.VideoFrame) -> NDArray[np.uint8]:
    """RGB [height, width, 3], without the gaps that PyAV leaves between rows."""
    return np.ascontiguousarray(frame.to_ndarray(format="rgb24", **_ONE_THREAD))


def _one_thread() -> dict[str, int]:
    """FFmpeg would start a thread for each processor and frame. Older PyAVs cannot tell it."""
    try:
        av.VideoFrame(16, 16, "rgb24").reformat(format="gray", threads=1)
    except TypeError:
        return {}
    return {"threads": 1}


_ONE_THREAD = _one_thread()
