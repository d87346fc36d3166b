"""Video as a camera's encoder gives it: one packet for each picture, with start codes."""

from fractions import Fraction
from typing import Any

import av
import numpy as np

from headstart.media.annex_b import Codec

ENCODERS = {Codec.H264: "libx264", Codec.H265: "libx265"}
DECODERS = {Codec.H264: "h264", Codec.H265: "hevc"}


def street(count: int, seed: int = 0, height: int = 64, width: int = 96) -> np.ndarray:
    """Frames of a street, each with a patch of its own."""
    from headstart_lab.street import street_video

    random = np.random.default_rng(seed)
    drawn = street_video(num_frames=16, width=width, height=height).frames
    frames = np.stack([drawn[number % len(drawn)] for number in range(count)])
    patches = random.integers(0, 256, (count, 4, 6, 3), dtype=np.uint8)
    frames[:, 16:48, 24:72] = patches.repeat(8, 1).repeat(8, 2)
    return frames


def encode(
    frames: np.ndarray, codec: Codec = Codec.H264, gop: int = 8, bframes: int = 0, **more: Any
) -> list[bytes]:
    """A key picture with its parameter sets at every ``gop``-th frame, and nowhere else."""
    context = av.CodecContext.create(ENCODERS[codec], "w")
    context.height, context.width = frames.shape[1:3]
    context.pix_fmt, context.time_base = "yuv420p", Fraction(1, 25)
    keys = f"keyint={gop}:min-keyint={gop}:scenecut=0:bframes={bframes}"
    if codec is Codec.H264:
        context.options = {"preset": "ultrafast", "x264-params": keys + ":threads=1", **more}
    else:
        single = ":open-gop=0:repeat-headers=1:log-level=none:pools=none:frame-threads=1"
        context.options = {"preset": "ultrafast", "x265-params": keys + single, **more}
    packets = []
    for number, frame in enumerate(frames):
        picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
        picture.pts = number
        packets += context.encode(picture)
    return [bytes(packet) for packet in (*packets, *context.encode(None))]


def decode(packets: list[bytes], codec: Codec = Codec.H264) -> list[np.ndarray]:
    """What FFmpeg makes of them."""
    context = av.CodecContext.create(DECODERS[codec], "r")
    frames = [frame for packet in packets for frame in context.decode(av.Packet(packet))]
    frames += context.decode(None)
    return [frame.to_ndarray(format="rgb24") for frame in frames]
