"""A video of a few bytes, to be decoded before a process is confined."""

import io

import av
import numpy as np


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
