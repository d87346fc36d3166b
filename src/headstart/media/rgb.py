"""A decoded frame as an array, converted by the thread that asks for it."""

import av
import numpy as np
from numpy.typing import NDArray


def rgb_of(frame: av.VideoFrame) -> NDArray[np.uint8]:
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
