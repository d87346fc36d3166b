"""The process that decodes one stream of a stranger's, confined.

`BoxedStream` runs this module as a program, with its settings as the argument. Its socket is
descriptor 0: bytes of the stream come in, frames go out, each behind a `HEADER`. It ends when the
stream does, or when the socket is closed.
"""

import ctypes
import io
import json
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress

import av
import numpy as np

from headstart.errors import MediaError
from headstart.live.sources.confined.confinement import ResourceLimits, confine
from headstart.media.stream import StreamBounds, decode_stream

HEADER = struct.Struct("<qII")
"""Before each frame: its time in us, width, height. With width 0 an error's text follows, and
height is its length in bytes; the first one, with both 0, says that the process is confined."""
WITHOUT_TIME = -(2**63)
MAX_ERROR_BYTES = 500
_PR_SET_PDEATHSIG = 1


class _Incoming:
    """The stream's bytes, as PyAV reads them."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def read(self, num_bytes: int) -> bytes:
        return self._socket.recv(num_bytes)


def work(sock: socket.socket, bounds: StreamBounds, memory_bytes: int) -> None:
    """Confine this process, then decode until the stream ends."""
    # Packages import parts of themselves on first use, which a confined process cannot do.
    for content in (small_video(), small_video()[:300], b"no video"):
        with suppress(MediaError):
            for _ in decode_stream(io.BytesIO(content), bounds):
                pass
    # A stream may be decoded for weeks: whoever started this process bounds its time.
    confine(ResourceLimits(cpu_s=resource.RLIM_INFINITY, memory_bytes=memory_bytes))
    sock.sendall(HEADER.pack(WITHOUT_TIME, 0, 0))
    try:
        for time_us, frame in decode_stream(_Incoming(sock), bounds):
            height, width, _ = frame.shape
            sock.sendall(HEADER.pack(WITHOUT_TIME if time_us is None else time_us, width, height))
            sock.sendall(frame.data.cast("B"))
    except MediaError as error:
        text = str(error).encode()[:MAX_ERROR_BYTES]
        sock.sendall(HEADER.pack(WITHOUT_TIME, 0, len(text)) + text)


def _main() -> None:
    # Linux ends this process when the thread that started it has ended, however it ended.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    settings = json.loads(sys.argv[1])
    try:
        work(socket.socket(fileno=0), StreamBounds(**settings["bounds"]), settings["memory_bytes"])
    finally:
        os._exit(0)  # tidying up would need what is forbidden now


def small_video() -> bytes:
    """Four black pictures of 16x16, as MPEG-4, to be decoded before a process is confined."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width = stream.height = 16
        frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
        for _ in range(4):
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


if __name__ == "__main__":
    _main()
