"""The videos and pictures of a request: fetched, named by what they are, decoded, laid out.

vLLM keeps what it computed of a picture by a name. Here the name is the owner and the digest of
the bytes, never an address or a client's word: what is called the same is the same.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from headstart.models.ownership import owned_id
from headstart.serve.connector import SHELF
from headstart.serve.decoding import DecodedPicture, DecodedVideo, Decoding
from headstart.serve.fetching import Fetched, Fetching, MediaPart
from headstart.serve.refusal import too_much
from headstart.serve.settings import Limits


class Loading:
    """Used from one event loop only."""

    def __init__(self, fetching: Fetching, decoding: Decoding, limits: Limits) -> None:
        self._fetching = fetching
        self._decoding = decoding
        self._limits = limits
        self._held: Counter[str] = Counter()

    @property
    def num_bytes(self) -> int:
        """Of decoded media that requests under way hold."""
        return self._held.total()

    @asynccontextmanager
    async def loaded(
        self, tenant: str, parts: Sequence[MediaPart]
    ) -> AsyncIterator[Callable[[], None]]:
        """Until the block is left, vLLM finds the media that the parts name now.

        Yields how to let them go before: once the first word is said, nobody asks for them again.
        """
        addresses: list[str] = []
        held = 0

        def let_go() -> None:
            nonlocal held
            while addresses:
                SHELF.drop(addresses.pop())
            self._held[tenant] -= held
            held = 0
            if not self._held[tenant]:
                del self._held[tenant]

        try:
            for part in parts:
                self._check_room(tenant)
                fetched = await self._fetching.media(part.url)
                digest = await asyncio.to_thread(_digest, part.kind, fetched)
                media = await self._decoded(tenant, part, fetched)
                held += media.num_bytes
                self._held[tenant] += media.num_bytes
                addresses.append(SHELF.put(digest, media))
                part.part[f"{part.kind}_url"] = {"url": addresses[-1]}
                part.part["uuid"] = _name(tenant, digest)
            yield let_go
        finally:
            let_go()

    async def _decoded(
        self, tenant: str, part: MediaPart, fetched: Fetched
    ) -> DecodedVideo | DecodedPicture:
        if part.kind == "video":
            return await self._decoding.video(tenant, fetched)
        return await self._decoding.picture(tenant, fetched)

    def _check_room(self, tenant: str) -> None:
        if self.num_bytes >= self._limits.max_media_bytes:
            raise too_much("the media of all requests under way hold too much memory")
        if self._held[tenant] >= self._limits.max_tenant_media_bytes:
            raise too_much("the media of your requests under way hold too much memory")


def _digest(kind: str, fetched: Fetched) -> str:
    # The same bytes as a video and as a list of JPEGs are not the same frames.
    digest = hashlib.sha256(f"{kind} {fetched.is_jpegs} ".encode())
    digest.update(fetched.content)
    return digest.hexdigest()


def _name(tenant: str, digest: str) -> str:
    return owned_id(hashlib.sha256(tenant.encode()).hexdigest(), digest)
