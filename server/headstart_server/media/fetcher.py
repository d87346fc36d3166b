"""Fetches the media and events that requests name.

A request may hold data URLs and name its tenant's uploads. Files and hosts are closed unless the
operator opened them under ``[media]``. vLLM itself fetches nothing.
"""

import asyncio
import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import aiohttp

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.readers.opening import SUFFIXES, reader_of
from headstart_server.refusal import RefusedError, bad_request
from headstart_server.settings import Settings
from headstart_server.uploads import ID_PREFIX, Uploads

CHUNK_BYTES = 1 << 16
_AMBIGUOUS = re.compile(r"[\\\s\x00-\x1f\x7f]")
_CLOSED = (
    "this server reads {what} only where its operator opened that ([media] in its settings);"
    " send the content as a data URL"
)
_JPEGS = "video/jpeg"
"""vLLM's media type for a video that is a list of JPEGs, each in base64."""


@dataclass(frozen=True)
class MediaPart:
    """A video or a picture of a message, not yet fetched."""

    kind: Literal["image", "video"]
    url: str
    part: dict[str, Any]
    """The part of the request's body; the loader puts vLLM's address and uuid into it."""


@dataclass(frozen=True)
class Fetched:
    """The bytes of a video, a picture or a recording."""

    content: bytes
    is_jpegs: bool = False
    """Whether a video is vLLM's list of JPEGs in base64."""
    suffix: str = ""
    """Of a recording whose first bytes do not tell its format."""


@dataclass(frozen=True)
class EventPart:
    """One ``event_url`` of a message, checked but not yet read."""

    url: str
    start_us: int | None = None
    stop_us: int | None = None
    sensor: SensorSize | None = None
    suffix: str = ""

    @classmethod
    def parse(cls, part: Mapping[str, Any]) -> "EventPart":
        """Read a part of a message that `bodies` has checked."""
        given = part["event_url"]
        start_us, stop_us = given.get("start_us"), given.get("stop_us")
        suffix = suffix_of(given.get("format"))
        return cls(given["url"], start_us, stop_us, _sensor(given.get("sensor")), suffix)


def suffix_of(format_name: object) -> str:
    """The file suffix of a format's name; raises for a format that has no reader."""
    if format_name is None:
        return ""
    suffix = f".{format_name}".lower()
    if suffix not in SUFFIXES:
        raise bad_request(f"format must be one of {', '.join(known[1:] for known in SUFFIXES)}")
    return suffix


def _sensor(text: str | None) -> SensorSize | None:
    try:
        return None if text is None else SensorSize.parse(text)
    except MediaError as error:
        raise bad_request(f"sensor must be like 640x480: {error}") from error


class MediaFetcher:
    """Fetches anew each time: nothing is cached by its address."""

    def __init__(self, settings: Settings, uploads: Uploads) -> None:
        self._limits = settings.limits
        self._root = settings.media_root
        self._domains = settings.media_domains
        self._uploads = uploads

    async def media(self, url: str) -> Fetched:
        if url[:5].lower() == "data:":
            return await asyncio.to_thread(_from_data_url, url)
        parts = _split(url)
        if parts.scheme in ("http", "https"):
            if parts.hostname not in self._domains:
                raise _closed("addresses")
            return Fetched(await self._download(url))
        if parts.scheme == "file":
            return Fetched(await asyncio.to_thread(self._read, self._file(url)))
        raise bad_request("a url must begin with data:, http:, https: or file:")

    def events(self, tenant: str, part: EventPart) -> Fetched:
        """Read the recording that a message part names. Blocks: call it in a thread."""
        if part.url.startswith(ID_PREFIX):
            return self.upload(tenant, part.url)
        if part.url.lower().startswith("file:"):
            path = self._file(part.url)
            return Fetched(self._read(path), suffix=path.suffix)
        if part.url[:5].lower() != "data:":
            raise bad_request(
                "event_url takes a data URL, the id of an upload, or a file URL where that is open"
            )
        return Fetched(_from_data_url(part.url).content, suffix=part.suffix)

    def upload(self, tenant: str, name: str) -> Fetched:
        """Read an upload. Blocks: call it in a thread."""
        upload = self._uploads.find(tenant, name)
        return Fetched(os.pread(upload.file.fileno(), upload.num_bytes, 0), suffix=upload.suffix)

    async def _download(self, url: str) -> bytes:
        timeout = aiohttp.ClientTimeout(total=self._limits.decode_s)
        content = bytearray()
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(url, allow_redirects=False) as response,
            ):
                if response.status != HTTPStatus.OK:
                    raise bad_request(f"that address answered with {response.status}")
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    content += chunk
                    self._check_size(len(content))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise bad_request("that address could not be read; send a data URL") from error
        return bytes(content)

    def _read(self, path: Path) -> bytes:
        try:
            with path.open("rb") as file:
                self._check_size(os.fstat(file.fileno()).st_size)
                return file.read(self._limits.max_media_file_bytes + 1)
        except OSError as error:
            raise _missing() from error

    def _check_size(self, num_bytes: int) -> None:
        if num_bytes > self._limits.max_media_file_bytes:
            raise bad_request(
                f"a file may have {self._limits.max_media_file_bytes} bytes; cut it shorter"
            )

    def _file(self, url: str) -> Path:
        if self._root is None:
            raise _closed("files")
        parts = _split(url)
        if parts.netloc not in ("", "localhost"):
            raise bad_request("a file URL names no host: file:///path")
        try:
            path = Path(unquote(parts.path)).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise _missing() from error
        # Resolved first: neither .. nor a link leads out, and the answer tells nothing of outside.
        if self._root not in path.parents or not path.is_file():
            raise _missing()
        return path


def check_recording(content: bytes, suffix: str) -> None:
    """Raise unless an upload begins like a recording of events."""
    if reader_of(content, suffix) is None:
        raise bad_request("that is not a recording of events; for raw, dat or csv add ?format=")


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError as error:
        raise bad_request("that url cannot be read") from error
    if "@" in parts.netloc or _AMBIGUOUS.search(url):
        # The HTTP client might read another host from it than this check does.
        raise bad_request("a url may hold no name, no password, no space and no backslash")
    return parts


def _from_data_url(url: str) -> Fetched:
    head, _, content = url.partition(",")
    kind, _, encoding = head[5:].lower().rpartition(";")
    if encoding != "base64":
        raise bad_request("a data URL must be base64")
    if kind == _JPEGS:
        # vLLM decodes the base64 of each picture itself.
        if not content.isascii():
            raise bad_request("the data URL is not base64")
        return Fetched(content.encode(), is_jpegs=True)
    try:
        return Fetched(base64.b64decode(content, validate=True))
    except (binascii.Error, ValueError) as error:
        raise bad_request("the data URL is not base64") from error


def _closed(what: str) -> RefusedError:
    return RefusedError(HTTPStatus.FORBIDDEN, _CLOSED.format(what=what))


def _missing() -> RefusedError:
    return RefusedError(HTTPStatus.NOT_FOUND, "there is no such file below the root that is open")
