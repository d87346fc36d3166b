"""Loads the videos and pictures of a request: fetches, decodes, and puts them into vLLM's reach.

vLLM caches what it computed of a picture under the picture's uuid. Here that is the owner and the
digest of the bytes, never an address or a name from the client: equal uuids mean equal content.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from headstart.models.ownership import owned_id, owner_of
from headstart_server.media.connector import STORE
from headstart_server.media.decoder import DecodedPicture, DecodedVideo, MediaDecoder
from headstart_server.media.fetcher import Fetched, MediaFetcher, MediaPart
from headstart_server.media.room import MediaRoom


class MediaLoader:
    """Used from one event loop only."""

    def __init__(self, fetcher: MediaFetcher, decoder: MediaDecoder, room: MediaRoom) -> None:
        self._fetcher = fetcher
        self._decoder = decoder
        self._room = room

    @asynccontextmanager
    async def loaded(
        self, tenant: str, parts: Sequence[MediaPart]
    ) -> AsyncIterator[Callable[[], None]]:
        """Load the media and point the parts at them until the block is left.

        Yields a function that releases them earlier: vLLM needs them only until the first token.
        """
        addresses: list[str] = []
        held = 0

        def release() -> None:
            nonlocal held
            while addresses:
                STORE.drop(addresses.pop())
            self._room.hold(tenant, -held)
            held = 0

        try:
            for part in parts:
                self._room.check(tenant)
                fetched = await self._fetcher.media(part.url)
                digest = await asyncio.to_thread(_digest, part.kind, fetched)
                media = await self._decoded(tenant, part, fetched)
                held += media.num_bytes
                self._room.hold(tenant, media.num_bytes)
                addresses.append(STORE.put(digest, media))
                part.part[f"{part.kind}_url"] = {"url": addresses[-1]}
                part.part["uuid"] = _uuid(tenant, digest)
            yield release
        finally:
            release()

    async def _decoded(
        self, tenant: str, part: MediaPart, fetched: Fetched
    ) -> DecodedVideo | DecodedPicture:
        if part.kind == "video":
            return await self._decoder.video(tenant, fetched)
        return await self._decoder.picture(tenant, fetched)


def _digest(kind: str, fetched: Fetched) -> str:
    # The same bytes as a video and as a list of JPEGs are not the same frames.
    digest = hashlib.sha256(f"{kind} {fetched.is_jpegs} ".encode())
    digest.update(fetched.content)
    return digest.hexdigest()


def _uuid(tenant: str, digest: str) -> str:
    return owned_id(owner_of(tenant), digest)
