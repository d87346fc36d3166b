"""What a camera sends as its pictures, and how they are decoded: stills, or encoded video.

They are decoded one after the other, from one task only. What cannot be decoded raises `MediaError`
or a refusal; the next one must be able to begin then.
"""

from headstart.errors import MediaError
from headstart.media import annex_b
from headstart.media.annex_b import Codec
from headstart_client.wire import MediaKind
from headstart_server.live.camera_resources import TenantContext
from headstart_server.media.decoder import DecodedPicture
from headstart_server.media.fetcher import Fetched


class Stills:
    """Pictures that stand for themselves: each of them can begin."""

    kind = MediaKind.PICTURE

    def __init__(self, context: TenantContext) -> None:
        self._context = context

    def can_begin(self, content: bytes) -> bool:
        return True

    async def decode(self, content: bytes) -> DecodedPicture:
        is_webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
        if not is_webp and not content.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")):
            raise MediaError("a picture is JPEG, PNG or WebP; encode it as one of them")
        return await self._context.decoder.picture(self._context.tenant, Fetched(content))

    def close(self) -> None:
        pass


class EncodedVideo:
    """Pictures of H.264 or H.265, decoded by a process that is this camera's alone."""

    kind = MediaKind.ENCODED

    def __init__(self, context: TenantContext, codec: Codec) -> None:
        self._decoder, self._codec = context.decoder, codec
        self._lease = context.decoder.lease(context.tenant)

    def can_begin(self, content: bytes) -> bool:
        """Whether the picture builds on none before: a key picture with its parameter sets."""
        return annex_b.can_begin(self._codec, content)

    async def decode(self, content: bytes) -> DecodedPicture:
        """Decode the picture that follows the last one; with a key picture, begin anew."""
        begins = self.can_begin(content)
        return await self._decoder.encoded_picture(self._lease, self._codec, content, begins=begins)

    def close(self) -> None:
        self._lease.close()


Pictures = Stills | EncodedVideo
