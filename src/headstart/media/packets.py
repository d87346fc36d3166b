"""Decodes encoded pictures that come one by one, each as soon as it is there."""

import av
import numpy as np
from av.codec.context import Flags
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.annex_b import Codec
from headstart.media.rgb import rgb_of

_NAMES = {Codec.H264: "h264", Codec.H265: "hevc"}


class PacketDecoder:
    """Of one camera, from one key picture on."""

    def __init__(self, codec: Codec, max_pixels: int) -> None:
        self._max_pixels = max_pixels
        self._context = av.CodecContext.create(_NAMES[codec], "r")
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
                f" {self._max_pixels} pixels ({getattr(error, 'strerror', None) or error})"
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
        return rgb_of(frame)
