"""Loads the videos and pictures of a request: fetches, decodes, and puts them into vLLM's reach.

vLLM builds a media connector for each request, and asks it for each address in the messages.
`register` makes that connector ours: it knows only addresses that `MediaStore.put` made, and vLLM
neither fetches nor decodes anything itself.

vLLM caches what it computed of a picture under the picture's uuid. Here that is the owner and the
digest of the bytes, never an address or a name from the client: equal uuids mean equal content.
"""

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from headstart.models.ownership import owned_id, owner_of
from headstart_server.limits import Limits
from headstart_server.media.decoder import DecodedPicture, DecodedVideo, MediaDecoder
from headstart_server.media.fetcher import Fetched, MediaFetcher, MediaPart
from headstart_server.refusal import too_much

SCHEME = "headstart:"


class MediaBudget:
    """The memory of decoded media, of all tenants and of each. Used from one event loop only.

    Media are counted once they are decoded, so the last one let in may go beyond the limit.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: Counter[str] = Counter()

    @property
    def num_bytes(self) -> int:
        return self._held.total()

    def check(self, tenant: str) -> None:
        """Raise a refusal where no more may be decoded for now."""
        if self.num_bytes >= self._limits.max_media_bytes:
            raise too_much("the media of all requests in flight hold too much memory")
        if self._held[tenant] >= self._limits.max_tenant_media_bytes:
            raise too_much("the media of your requests in flight hold too much memory")

    def hold(self, tenant: str, num_bytes: int) -> None:
        """Count so many bytes more; a negative number gives them back."""
        self._held[tenant] += num_bytes
        if not self._held[tenant]:
            del self._held[tenant]


class MediaStore:
    """Decoded media of requests in flight, by addresses that clients cannot guess."""

    def __init__(self) -> None:
        self._media: dict[str, Any] = {}

    def put(self, digest: str, media: DecodedVideo | DecodedPicture) -> str:
        """Keep a video or a picture; returns its address for vLLM."""
        from vllm.multimodal.media.base import MediaWithBytes

        address = SCHEME + secrets.token_hex(16)
        if isinstance(media, DecodedVideo):
            decoded: Any = (media.frames, media.metadata)
        else:
            decoded = media.image
        # vLLM hashes these bytes to identify media that have no uuid: the content's digest.
        self._media[address] = MediaWithBytes(decoded, digest.encode())
        return address

    def get(self, address: str) -> Any:
        found = self._media.get(address)
        if found is None:
            raise ValueError("media are fetched by the server itself, from the request as it came")
        return found

    def drop(self, address: str) -> None:
        self._media.pop(address, None)


STORE = MediaStore()
"""Global because vLLM builds its connectors itself."""


def register() -> None:
    """Replace the connector that vLLM would use."""
    import vllm.envs as envs
    from vllm.multimodal.media import MEDIA_CONNECTOR_REGISTRY, MediaConnector

    class StoreConnector(MediaConnector):
        def __init__(
            self, media_io_kwargs: dict[str, dict[str, Any]] | None = None, **_addresses: Any
        ) -> None:
            super().__init__(media_io_kwargs)

        def load_from_url(self, url: str, media_io: Any, **_timeouts: Any) -> Any:
            return STORE.get(url)

        async def load_from_url_async(self, url: str, media_io: Any, **_timeouts: Any) -> Any:
            return STORE.get(url)

    MEDIA_CONNECTOR_REGISTRY.register(envs.VLLM_MEDIA_CONNECTOR)(StoreConnector)


class MediaLoader:
    """Used from one event loop only."""

    def __init__(self, fetcher: MediaFetcher, decoder: MediaDecoder, budget: MediaBudget) -> None:
        self._fetcher = fetcher
        self._decoder = decoder
        self._budget = budget

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
            self._budget.hold(tenant, -held)
            held = 0

        try:
            for part in parts:
                self._budget.check(tenant)
                fetched = await self._fetcher.media(part.url)
                digest = await asyncio.to_thread(_digest, part.kind, fetched)
                media = await self._decoded(tenant, part, fetched)
                held += media.num_bytes
                self._budget.hold(tenant, media.num_bytes)
                addresses.append(STORE.put(digest, media))
                part.part[f"{part.kind}_url"] = {"url": addresses[-1]}
                part.part["uuid"] = owned_id(owner_of(tenant), digest)
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
