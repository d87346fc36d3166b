"""Videos of a few bytes, to be decoded before a process is confined."""

import io

import av
import numpy as np

from headstart.media.annex_b import Codec

SMALL_PACKETS = {
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


def small_video() -> bytes:
    """Four black pictures of 16x16, as MPEG-4."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width = stream.height = 16
        frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
        for _ in range(4):
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()
