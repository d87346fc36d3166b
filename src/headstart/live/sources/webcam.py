"""A webcam of this machine. Its bytes are trusted: they are decoded in this process."""

import threading
from collections.abc import Iterator

from headstart.media.stream import StreamBounds, TimedFrame, read_webcam


class WebcamConnection:
    """A `Connection` to a V4L2 device."""

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
