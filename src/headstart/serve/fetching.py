"""What a request may name: data in the request itself, and what the operator opened.

Closed by default. vLLM fetches videos itself; here is decided whether it is handed the address
at all. Events are read here.
"""

import base64
import binascii
import io
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import av

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart.media.readers.opening import MAGIC, SUFFIX, open_recording
from headstart.serve.film import film
from headstart.serve.library import ID_PREFIX, Library
from headstart.serve.refusal import RefusedError, bad_request
from headstart.serve.settings import Settings

_MISREAD = re.compile(r"[\\\s\x00-\x1f\x7f]")
_CLOSED = (
    "this server reads {what} only where its operator opened that ([media] in its settings);"
    " send the content as a data URL"
)


@dataclass(frozen=True)
class EventPart:
    """One ``event_url`` of a message, checked but not yet read."""

    url: str
    start_us: int | None
    stop_us: int | None
    sensor: SensorSize | None
    suffix: str

    @classmethod
    def parse(cls, part: Mapping[str, Any]) -> "EventPart":
        """From ``{"url": ..., "start_us": ..., "stop_us": ..., "sensor": "640x480"}``."""
        given = part.get("event_url")
        if isinstance(given, str):
            given = {"url": given}
        if not isinstance(given, Mapping) or not isinstance(given.get("url"), str):
            raise bad_request('event_url must be {"url": "..."}')
        unknown = set(given) - {"url", "start_us", "stop_us", "sensor", "format"}
        if unknown:
            raise bad_request(f"event_url knows no {sorted(unknown)[0][:64]!r}")
        start_us, stop_us = (_time(given.get(name), name) for name in ("start_us", "stop_us"))
        return cls(given["url"], start_us, stop_us, _sensor(given), suffix_of(given.get("format")))


def suffix_of(format_name: object) -> str:
    """The file ending of a format's name; only endings a reader has."""
    if format_name is None:
        return ""
    suffix = f".{format_name}".lower()
    if suffix not in {*SUFFIX, ".npy", ".npz", ".h5", ".hdf5", ".aedat4"}:
        raise bad_request("format must be one of npy, npz, h5, aedat4, raw, dat, csv")
    return suffix


def _time(value: object, name: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise bad_request(f"{name} must be a whole number of microseconds")


def _sensor(given: Mapping[str, Any]) -> SensorSize | None:
    if given.get("sensor") is None:
        return None
    try:
        return SensorSize.parse(str(given["sensor"]))
    except MediaError as error:
        raise bad_request(f"sensor must be like 640x480: {error}") from error


class Fetching:
    """Reads what requests name. Safe to use from several threads."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self._limits = settings.limits
        self._root = settings.media_root
        self._domains = settings.media_domains
        self._library = library

    def check_address(self, url: object) -> None:
        """Raise unless vLLM may be handed this address of a video or a picture."""
        if not isinstance(url, str):
            raise bad_request("a url must be text")
        if url[:5].lower() == "data:":
            if not url[:256].partition(",")[0].lower().endswith(";base64"):
                raise bad_request("a data URL must be base64")
            self._check_video(url)
            return
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError as error:
            raise bad_request("that url cannot be read") from error
        if "@" in parts.netloc or _MISREAD.search(url):
            # Who connects might see another host in it than is seen here.
            raise bad_request("a url may hold no name, no password, no space and no backslash")
        if parts.scheme in ("http", "https"):
            if host not in self._domains:
                raise _closed("addresses")
        elif parts.scheme == "file":
            self._file(url)
        else:
            raise bad_request("a url must begin with data:, http:, https: or file:")

    def _check_video(self, url: str) -> None:
        """Read what a video says of itself, so that its frames are never larger than allowed."""
        head, _, content = url.partition(",")
        if not head.lower().startswith("data:video/") or "jpeg" in head.lower():
            return  # a picture: vLLM bounds those by VLLM_MAX_IMAGE_PIXELS
        try:
            with av.open(io.BytesIO(_decoded(content)), metadata_errors="ignore") as container:
                stream = container.streams.video[0]
                num_pixels = stream.codec_context.width * stream.codec_context.height
                duration_s = (container.duration or 0) / av.time_base
        except (av.FFmpegError, AttributeError, IndexError, ValueError) as error:
            raise bad_request(
                "the video in the data URL cannot be read; send MP4 or WebM"
            ) from error
        if num_pixels > self._limits.max_frame_pixels:
            raise bad_request(f"a frame may have {self._limits.max_frame_pixels} pixels at most")
        if duration_s > self._limits.max_video_s:
            raise bad_request(f"a video may last {self._limits.max_video_s} s at most")

    def events(self, tenant: str, part: EventPart) -> Events:
        """The events a message part names. Blocks: call it in a thread."""
        if part.url.startswith(ID_PREFIX):
            return self._read(self._library.find(tenant, part.url), part)
        if part.url.lower().startswith("file:"):
            return self._read(self._file(part.url), part)
        head, separator, content = part.url.partition(",")
        if not head.lower().startswith("data:") or not separator:
            raise bad_request(
                "event_url takes a data URL, the id of an upload, or a file URL where that is open"
            )
        if not head.lower().endswith(";base64"):
            raise bad_request("a data URL must be base64")
        with tempfile.NamedTemporaryFile(suffix=part.suffix) as file:
            file.write(_decoded(content))
            file.flush()
            return self._read(Path(file.name), part)

    def film(self, tenant: str, name: str) -> bytes:
        """An upload as a picture. Blocks: call it in a thread."""
        part = EventPart(name, None, None, None, "")
        return film(self._read(self._library.find(tenant, name), part))

    def _read(self, path: Path, part: EventPart) -> Events:
        limits = self._limits
        _refuse_pickle(path)
        try:
            with open_recording(path, part.sensor, limits.max_events) as recording:
                size = recording.sensor
                if size.width * size.height > limits.max_frame_pixels:
                    raise bad_request(f"a sensor may have {limits.max_frame_pixels} pixels at most")
                # Open ends are the recording's own.
                start = recording.first_us if part.start_us is None else part.start_us
                stop = start + limits.max_window_us if part.stop_us is None else part.stop_us
                if not 0 < stop - start <= limits.max_window_us:
                    raise bad_request(
                        f"a window of events is longer than 0 and {limits.max_window_us} us at"
                        " most; give start_us and stop_us"
                    )
                return recording.read(start, stop)
        except (MediaError, OverflowError) as error:
            # What a reader says names the file, whose place is nobody's business.
            said = str(error).replace(str(path), "the recording").replace(path.name, "it")
            raise bad_request(f"the events cannot be read: {said}") from error

    def _file(self, url: str) -> Path:
        if self._root is None:
            raise _closed("files")
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise bad_request("a file URL names no host: file:///path")
        try:
            path = Path(unquote(parts.path)).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise _missing() from error
        # Resolved first: neither .. nor a link leads out, and nobody learns what is outside.
        if self._root not in path.parents or not path.is_file():
            raise _missing()
        return path


def check_recording(content: bytes, suffix: str) -> None:
    """Raise unless an upload begins like a recording of events."""
    if not content.startswith(tuple(MAGIC)) and suffix not in SUFFIX:
        raise bad_request("that is not a recording of events; for raw, dat or csv add ?format=")


def _refuse_pickle(path: Path) -> None:
    """A pickle is a program. Our reader runs none of it; from the network it is not even read."""
    with path.open("rb") as file:
        head = file.read(256)
    if head.startswith(b"\x93NUMPY") and b"'|O'" in head:
        raise bad_request("pickled events are not read here; save x, y, t, p with numpy.savez")


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request("the data URL is not base64") from error


def _closed(what: str) -> RefusedError:
    return RefusedError(HTTPStatus.FORBIDDEN, _CLOSED.format(what=what))


def _missing() -> RefusedError:
    return RefusedError(HTTPStatus.NOT_FOUND, "there is no such file below the root that is open")
