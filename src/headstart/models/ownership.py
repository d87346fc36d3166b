"""Names of pictures that one owner's requests share and nobody else's.

vLLM keeps preprocessed and encoded pictures by name, for all requests alike. A server with
several tenants names each picture after its owner too, so that no tenant is answered sooner
because another has shown the same picture.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

_MARK = "owned:"


def owned_id(owner: str, name: str) -> str:
    """The name of an owner's picture or video, for vLLM's ``uuid``."""
    return f"{_MARK}{owner}:{name}"


def frame_id(uuid: str, number: int, frame: NDArray[np.uint8]) -> str:
    """The name of a video's frame.

    A plain name is the caller's word for the whole video. An owned one says whose it is; the
    frame's own pixels say which, so frames seen before in other videos are found again.
    """
    if not uuid.startswith(_MARK):
        return f"{uuid}-frame-{number}"
    owner = uuid.removeprefix(_MARK).partition(":")[0]
    pixels = hashlib.sha256(repr(frame.shape).encode())
    pixels.update(np.ascontiguousarray(frame).data)
    return owned_id(owner, pixels.hexdigest())
