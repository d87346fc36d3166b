"""Opens a source by its name, whatever kind it is."""

import re
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.boxed_stream import BoxedConnection, StreamLimits
from headstart.live.sources.confined.shares import Share
from headstart.live.sources.folder import folder, video_file
from headstart.live.sources.http_stream import HttpStream
from headstart.live.sources.reconnecting import Reconnecting
from headstart.live.sources.rtsp.stream import RtspStream
from headstart.live.sources.source import MAX_WAITING, BufferedSource, Source
from headstart.media.events import SensorSize
from headstart.media.stream import StreamBounds, TimedFrame, read_webcam

ENTRY_POINTS = "headstart.sources"
"""The entry point group under which a package registers a kind of source: a function that takes
what stands behind the colon, and returns a `Source`."""
EVENTS_BESIDE = "headstart.events_beside"
"""The group under which a package registers what puts events beside frames."""
HOW_TO_INSTALL = {"drive": "in a checkout of headstart: pip install ./lab"}
KINDS = "a video file, a folder, rtsp://, http:// or https://, /dev/video0, or drive:SEED"


def open_source(name: str) -> Source:
    """Open a camera, or what stands for one.

    A video file plays at its own pace; a folder gives what is written to it; ``rtsp://``,
    ``rtsps://``, ``http://`` and ``https://`` are cameras on the network, decoded in a confined
    process; ``/dev/video0`` is a webcam; ``drive:7`` is a kind that an installed package adds.
    Nothing is connected before the first arrival is asked for.
    """
    if "://" in name:
        return camera(Address.parse(name))
    if re.match(r"/dev/video\d+$", name):
        return BufferedSource(name, Reconnecting(name, lambda: WebcamConnection(name)))
    path = Path(name)
    if path.is_dir():
        return folder(path)
    if path.is_file():
        return video_file(path)
    kind, colon, rest = name.partition(":")
    if colon:
        for found in entry_points(group=ENTRY_POINTS, name=kind):
            source: Source = found.load()(rest)
            return source
        if kind in HOW_TO_INSTALL:
            raise SourceError(f"{kind}: is not installed: {HOW_TO_INSTALL[kind]}")
    raise SourceError(f"{name} is no source: there is no such file; give {KINDS}")


def events_beside(source: Source, given: str, sensor: SensorSize | None = None) -> Source:
    """The source with events beside its frames.

    ``camera`` are those of the event camera that is plugged in, ``simulated`` are made from the
    frames; all else is the path of a recording.
    """
    kind = given if given in ("camera", "simulated") else "recording"
    for found in entry_points(group=EVENTS_BESIDE, name=kind):
        stated = {"recording": given, "sensor": sensor} if kind == "recording" else {}
        beside: Source = found.load()(source, **stated)
        return beside
    raise SourceError("events beside a source need a package more: pip install 'headstart[events]'")


def camera(
    address: Address,
    limits: StreamLimits | None = None,
    *,
    name: str | None = None,
    max_waiting: int = MAX_WAITING,
    reading: Share | None = None,
    decoding: Share | None = None,
) -> Source:
    """A camera on the network; it is known by its address without the password, if by no name.

    ``reading`` and ``decoding`` are its shares of the processors, here and in the process that
    decodes; without them it has one processor for each.
    """
    limits, name = limits or StreamLimits(), name or str(address)
    kind = RtspStream if address.scheme.startswith("rtsp") else HttpStream

    def connect() -> BoxedConnection:
        return BoxedConnection(kind(address, limits.silent_s, reading), limits, decoding)

    return BufferedSource(name, Reconnecting(name, connect), max_waiting)


class WebcamConnection:
    """A `Connection` to a webcam, whose bytes are trusted: they are decoded in this process."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._stopped = threading.Event()

    def frames(self) -> Iterator[TimedFrame]:
        """Yield the camera's frames. The kernel reports a camera that is unplugged as an error."""
        for time_us, frame in read_webcam(self._device, StreamBounds()):
            if self._stopped.is_set():
                return
            yield time_us, frame

    def close(self) -> None:
        """End `frames` with its next frame."""
        self._stopped.set()
