"""Cache names of pictures that only the requests of one owner share.

vLLM caches preprocessed and encoded pictures by name, for all requests. A server with several
tenants puts the owner into the name, so that no tenant can learn from a fast answer that another
tenant has sent the same picture.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MARK = "owned:"


def owned_id(owner: str, name: str) -> str:
    """The name of an owner's picture or video, to be vLLM's ``uuid``."""
    return f"{_MARK}{owner}:{name}"


def part_id(
    uuid: str, number: int, frames: NDArray[np.uint8], timing: Mapping[str, Any] | None = None
) -> str:
    """The name of one part of a video that is named ``uuid``.

    Under a caller's own name, a part is named by its number. Under a name from `owned_id` it is
    named by its pixels and times, so that a part of another video of the same owner is found again.
    """
    if not uuid.startswith(_MARK):
        return f"{uuid}-part-{number}"
    owner = uuid.removeprefix(_MARK).partition(":")[0]
    content = hashlib.sha256(repr(frames.shape).encode())
    content.update(json.dumps(timing, sort_keys=True).encode())
    content.update(np.ascontiguousarray(frames).data)
    return owned_id(owner, content.hexdigest())
