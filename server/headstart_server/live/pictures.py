"""What a camera sends as its pictures, and how they are decoded: stills, or encoded video."""

from typing import Protocol

from headstart.errors import MediaError
from headstart.media import annex_b
from headstart.media.annex_b import Codec
from headstart_client.wire import MediaKind
from headstart_server.live.gate import Gate
from headstart_server.media.decoder import DecodedPicture
from headstart_server.media.fetcher import Fetched


class Pictures(Protocol):
    """Of one camera, decoded one after the other. Used from one task only."""

    @property
    def kind(self) -> MediaKind:
        """How its messages are marked."""

    def can_begin(self, content: bytes) -> bool:
        """Whether the picture builds on none before. Raises `MediaError`."""

    async def decode(self, content: bytes) -> DecodedPicture:
        """Decode the picture that follows the last one, or can begin. Raises `MediaError` or a
        refusal; the next one must be able to begin then."""

    def close(self) -> None:
        """Give back what decoding holds."""


class Stills:
    """Pictures that stand for themselves."""

    kind = MediaKind.PICTURE

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def can_begin(self, content: bytes) -> bool:
        """Each of them can."""
        return True

    async def decode(self, content: bytes) -> DecodedPicture:
        """Decode it, if it is one."""
        is_webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
        if not is_webp and not content.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")):
            raise MediaError("a picture is JPEG, PNG or WebP; encode it as one of them")
        return await self._gate.decoder.picture(self._gate.tenant, Fetched(content))

    def close(self) -> None:
        """They hold nothing."""


class EncodedVideo:
    """Pictures of H.264 or H.265, decoded by a process that is this camera's alone."""

    kind = MediaKind.ENCODED

    def __init__(self, gate: Gate, codec: Codec) -> None:
        self._gate, self._codec = gate, codec
        self._lease = gate.decoder.lease(gate.tenant)

    def can_begin(self, content: bytes) -> bool:
        """Key pictures with their parameter sets can."""
        return annex_b.can_begin(self._codec, content)

    async def decode(self, content: bytes) -> DecodedPicture:
        """Decode it after the one before; with a key picture the decoder begins anew."""
        begins = self.can_begin(content)
        return await self._gate.decoder.encoded_picture(
            self._lease, self._codec, content, begins=begins
        )

    def close(self) -> None:
        """End the process."""
        self._lease.close()
