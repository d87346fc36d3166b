"""A confined process that decodes one stranger's stream, seen from outside."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from headstart.errors import MediaError
from headstart.media.stream import StreamBounds, TimedFrame
from headstart.sandbox.stream_worker import HEADER, MAX_ERROR_BYTES, WITHOUT_TIME

WORKER = ("-m", "headstart.sandbox.stream_worker")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_MAX_TIME_US = 2**62
_START_S = 60.0


@dataclass(frozen=True)
class StreamLimits:
    """What one stream may take."""

    bounds: StreamBounds = field(default_factory=StreamBounds)
    memory_bytes: int = 512 << 20
    """Of the process that decodes it, on top of what it holds before the first byte."""
    silent_s: float = 10.0
    """Without a picture for so long, the stream counts as lost."""


class BoxedStream:
    """Bytes in, frames out. One thread writes, one reads the frames, any may `kill`.

    The process ends when it is killed, when the thread that made this object ends, and when the
    stream is decoded to its end.
    """

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._socket, theirs = socket.socketpair()
        settings = {"bounds": asdict(limits.bounds), "memory_bytes": limits.memory_bytes}
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        root = str(Path(__file__).parents[2])
        search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *WORKER, json.dumps(settings)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={**inherited, "PYTHONPATH": search, **single},
            )

    @property
    def pid(self) -> int:
        """The process that decodes."""
        return self._process.pid

    def write(self, content: bytes) -> None:
        """Hand on bytes of the stream; blocks while the process has enough of them."""
        # Whoever reads the frames watches the time.
        self._socket.sendall(content)

    def end(self) -> None:
        """Say that no more bytes come: what is left is decoded."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def frames(self) -> Iterator[TimedFrame]:
        """The frames, until the stream is decoded to its end. Raises `MediaError`.

        What the process says is checked: the stream may have taken it over.
        """
        if self._receive(HEADER.size, time.monotonic() + _START_S) is None:
            raise MediaError("no process can be started to decode it; see whether memory is short")
        while True:
            deadline_s = time.monotonic() + self._limits.silent_s
            head = self._receive(HEADER.size, deadline_s)
            if head is None:
                return
            time_us, width, height = HEADER.unpack(head)
            if not width:
                text = self._receive(min(height, MAX_ERROR_BYTES), deadline_s) or b""
                raise MediaError(_printable(text))
            if not 0 < width * height <= self._limits.bounds.max_pixels:
                raise MediaError("the process that decoded it broke down; restart the camera")
            pixels = self._receive(width * height * 3, deadline_s)
            if pixels is None:
                raise MediaError("the process that decoded it ended; see whether memory is short")
            is_timed = time_us != WITHOUT_TIME and abs(time_us) < _MAX_TIME_US
            frame = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
            yield time_us if is_timed else None, frame

    def kill(self) -> None:
        """End the process and whoever waits for it. Idempotent; from any thread."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the process and give the socket back, once nobody reads or writes any more."""
        self.kill()
        self._socket.close()

    def _receive(self, num_bytes: int, deadline_s: float) -> bytearray | None:
        """Exactly so many bytes; None where the process has ended."""
        content = bytearray(num_bytes)
        view, num_received = memoryview(content), 0
        while num_received < num_bytes:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not _is_readable(self._socket, left_s):
                raise MediaError(
                    f"no picture came for {self._limits.silent_s:g} s; see whether the camera runs"
                )
            try:
                received = self._socket.recv_into(view[num_received:])
            except ConnectionError:
                return None
            if not received:
                return None
            num_received += received
        return content


def _is_readable(sock: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()  # select() takes no descriptor above 1023
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _printable(text: bytes | bytearray) -> str:
    said = bytes(text).decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in said)
