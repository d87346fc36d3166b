"""Where vLLM finds the media of a request: decoded already, by us.

vLLM builds a connector for each request, of the class registered here, and asks it for the
address in the message. Addresses are names on the shelf; anything else there is refused, so vLLM
neither fetches nor decodes anything itself.
"""

import secrets
from typing import Any

import vllm.envs as envs
from vllm.multimodal.media import MEDIA_CONNECTOR_REGISTRY, MediaConnector
from vllm.multimodal.media.base import MediaWithBytes

from headstart.serve.decoding import DecodedPicture, DecodedVideo

SCHEME = "headstart:"


class Shelf:
    """Media of requests under way, each under a name that nobody can guess."""

    def __init__(self) -> None:
        self._media: dict[str, MediaWithBytes[Any]] = {}

    def put(self, digest: str, media: DecodedVideo | DecodedPicture) -> str:
        """The address under which vLLM finds it."""
        address = SCHEME + secrets.token_hex(16)
        if isinstance(media, DecodedVideo):
            decoded: Any = (media.frames, media.told)
        else:
            decoded = media.image
        # vLLM names media by these bytes where nothing else names them: the content's digest.
        self._media[address] = MediaWithBytes(decoded, digest.encode())
        return address

    def get(self, address: str) -> MediaWithBytes[Any]:
        """What lies there."""
        found = self._media.get(address)
        if found is None:
            raise ValueError("media are fetched by the server itself, from the request as it came")
        return found

    def drop(self, address: str) -> None:
        """The request is over."""
        self._media.pop(address, None)


SHELF = Shelf()
"""vLLM builds its connectors itself: this is where it and we meet."""


class ShelfConnector(MediaConnector):
    """Hands out what is on the shelf."""

    def __init__(
        self, media_io_kwargs: dict[str, dict[str, Any]] | None = None, **_addresses: Any
    ) -> None:
        super().__init__(media_io_kwargs)

    def load_from_url(self, url: str, media_io: Any, **_timeouts: Any) -> Any:
        """As vLLM's, from the shelf."""
        return SHELF.get(url)

    async def load_from_url_async(self, url: str, media_io: Any, **_timeouts: Any) -> Any:
        """As vLLM's, from the shelf."""
        return SHELF.get(url)


def register() -> None:
    """In place of whatever connector vLLM would use."""
    MEDIA_CONNECTOR_REGISTRY.register(envs.VLLM_MEDIA_CONNECTOR)(ShelfConnector)
