"""The newest picture of a camera for people: small, as JPEG."""

import asyncio
import io
import time

import numpy as np
import PIL.Image
from numpy.typing import NDArray

MAX_SIDE = 640
FRESH_S = 0.1
"""For so long the same picture is given: however many ask, few are encoded."""


class Snapshot:
    """Used from one event loop only."""

    def __init__(self) -> None:
        self._made_s = -FRESH_S
        self._making: asyncio.Task[bytes] | None = None

    async def of(self, frame: NDArray[np.uint8]) -> bytes:
        """The frame, or the one before if that was asked for just now."""
        making, now_s = self._making, time.monotonic()
        if making is None or (making.done() and now_s - self._made_s >= FRESH_S):
            making = self._making = asyncio.ensure_future(asyncio.to_thread(_jpeg, frame))
            self._made_s = now_s
        return await asyncio.shield(making)  # others may wait for it


def _jpeg(frame: NDArray[np.uint8]) -> bytes:
    image = PIL.Image.fromarray(frame)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=85)
    return content.getvalue()
