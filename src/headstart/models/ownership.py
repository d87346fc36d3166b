"""Cache names of pictures that only the requests of one owner share.

vLLM caches preprocessed and encoded pictures by name, for all requests. A server with several
tenants puts the owner into the name, so that no tenant can learn from a fast answer that another
tenant has sent the same picture.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

_MARK = "owned:"


def owned_id(owner: str, name: str) -> str:
    """The name of an owner's picture or video, to be vLLM's ``uuid``."""
    return f"{_MARK}{owner}:{name}"


def frame_id(uuid: str, number: int, frame: NDArray[np.uint8]) -> str:
    """The name of one frame of a video that is named ``uuid``.

    Under a caller's own name, a frame is named by its number. Under a name from `owned_id` it is
    named by its pixels, so that a frame of another video of the same owner is found again.
    """
    if not uuid.startswith(_MARK):
        return f"{uuid}-frame-{number}"
    owner = uuid.removeprefix(_MARK).partition(":")[0]
    pixels = hashlib.sha256(repr(frame.shape).encode())
    pixels.update(np.ascontiguousarray(frame).data)
    return owned_id(owner, pixels.hexdigest())
