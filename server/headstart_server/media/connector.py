"""Hands decoded media to vLLM, which then neither fetches nor decodes anything itself.

vLLM builds a media connector for each request and asks it for each address in the messages.
`register` makes that connector ours: it knows only addresses that `MediaStore.put` made.
"""

import secrets
from typing import Any

import vllm.envs as envs
from vllm.multimodal.media import MEDIA_CONNECTOR_REGISTRY, MediaConnector
from vllm.multimodal.media.base import MediaWithBytes

from headstart_server.media.decoder import DecodedPicture, DecodedVideo

SCHEME = "headstart:"


class MediaStore:
    """Decoded media of requests in flight, by addresses that clients cannot guess."""

    def __init__(self) -> None:
        self._media: dict[str, MediaWithBytes[Any]] = {}

    def put(self, digest: str, media: DecodedVideo | DecodedPicture) -> str:
        """Keep a video or a picture; returns its address for vLLM."""
        address = SCHEME + secrets.token_hex(16)
        if isinstance(media, DecodedVideo):
            decoded: Any = (media.frames, media.metadata)
        else:
            decoded = media.image
        # vLLM hashes these bytes to identify media that have no uuid: the content's digest.
        self._media[address] = MediaWithBytes(decoded, digest.encode())
        return address

    def get(self, address: str) -> MediaWithBytes[Any]:
        """The media at an address."""
        found = self._media.get(address)
        if found is None:
            raise ValueError("media are fetched by the server itself, from the request as it came")
        return found

    def drop(self, address: str) -> None:
        """Forget the media at an address."""
        self._media.pop(address, None)


STORE = MediaStore()
"""Global because vLLM builds its connectors itself."""


class StoreConnector(MediaConnector):
    """vLLM's connector, reading from the store."""

    def __init__(
        self, media_io_kwargs: dict[str, dict[str, Any]] | None = None, **_addresses: Any
    ) -> None:
        super().__init__(media_io_kwargs)

    def load_from_url(self, url: str, media_io: Any, **_timeouts: Any) -> Any:
        """The media that `STORE` has at this address."""
        return STORE.get(url)

    async def load_from_url_async(self, url: str, media_io: Any, **_timeouts: Any) -> Any:
        """The media that `STORE` has at this address."""
        return STORE.get(url)


def register() -> None:
    """Replace the connector that vLLM would use."""
    MEDIA_CONNECTOR_REGISTRY.register(envs.VLLM_MEDIA_CONNECTOR)(StoreConnector)
