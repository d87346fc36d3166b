"""Decodes a small file of each kind before workers are forked.

Packages import parts of themselves on first use, which a confined worker cannot do.
"""

import io
from contextlib import suppress

import cv2
import PIL.Image

from headstart.live.sources.confined.stream_worker import small_video
from headstart.media.annex_b import Codec
from headstart.media.stream import PacketDecoder
from headstart_events.readers.preloading import preload
from headstart_server.sandbox.vllm_media import Bounds, Loaders

_BOUNDS = Bounds(max_frame_pixels=1 << 20, max_clip_pixels=1 << 20, max_video_s=60)

_SMALL_PACKETS = {
    Codec.H264: bytes.fromhex(
        "000000016742c00ada7a1000000300100000030328f1226a0000000168ce0fc8000000016588843a2628000902"
        "e0"
    ),
    Codec.H265: bytes.fromhex(
        "0000000140010c01ffff01600000030090000003000003001eba02400000000142010101600000030090000003"
        "000003001ea04208596e92930b9a020000030002000003003210000000014401c073c089000000012801ac760d"
        "9ffef2ee"
    ),
}
"""One black key picture of each codec, of 16x16 and of 32x32."""


def warm_up(loaders: Loaders) -> None:
    """Decode one file of each kind, whole and damaged."""
    cv2.setNumThreads(0)  # a process with threads cannot be forked safely
    preload()
    PIL.Image.init()
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        file = io.BytesIO()
        PIL.Image.new("RGB", (16, 16)).save(file, kind)
        loaders.picture(file.getvalue(), _BOUNDS)
        with suppress(Exception):
            loaders.picture(file.getvalue()[:-20], _BOUNDS)
    loaders.video(small_video(), _BOUNDS, is_jpegs=False)
    with suppress(Exception):
        loaders.video(small_video()[:300], _BOUNDS, is_jpegs=False)
    for codec, packet in _SMALL_PACKETS.items():
        PacketDecoder(codec, _BOUNDS.max_frame_pixels).decode(packet)
        with suppress(Exception):
            PacketDecoder(codec, _BOUNDS.max_frame_pixels).decode(packet[:-4])
