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


def owner_of(tenant: str) -> str:
    """The owner's name in an id: that of a tenant may hold anything."""
    return hashlib.sha256(tenant.encode()).hexdigest()


def owned_names(tenant: str, media: Mapping[str, Any], content: str) -> dict[str, list[str]]:
    """Names for everything a tenant's request shows, as vLLM's ``multi_modal_uuids``.

    ``content`` differs where what is shown does. It may be empty where only videos are shown and
    all of them are cut into parts: each part then gets a name of its own, see `part_id`.
    """
    owner = owner_of(tenant)
    return {
        kind: [
            owned_id(owner, f"{content}-{number}")
            for number in range(len(shown) if isinstance(shown, list) else 1)
        ]
        for kind, shown in media.items()
    }


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
