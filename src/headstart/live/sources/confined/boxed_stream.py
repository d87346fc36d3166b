"""A stranger's stream: its bytes are fetched here, and decoded in a confined process."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np

from headstart.errors import HeadstartError, MediaError, SourceError
from headstart.live.sources.confined.confinement import ProcessState
from headstart.live.sources.confined.shares import Share, Shares
from headstart.live.sources.confined.stream_worker import HEADER, MAX_ERROR_BYTES, WITHOUT_TIME
from headstart.live.sources.pace import Pace
from headstart.media.stream import StreamBounds, TimedFrame

WORKER = ("-m", "headstart.live.sources.confined.stream_worker")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_MAX_TIME_US = 2**62
_START_S = 60.0
LOOK_S = 0.1
"""How often the processor time is looked at: for so long a process may take more than its share."""
NICENESS = 5
"""Of the process: engines and sockets come first. One that competes with a busy engine's thread for
a processor still gets a quarter of it, which 1920x1080 takes."""


@dataclass(frozen=True)
class StreamLimits:
    """What one stream may take."""

    bounds: StreamBounds = field(default_factory=StreamBounds)
    memory_bytes: int = 512 << 20
    """Of the process that decodes it, on top of what it holds before the first byte."""
    silent_s: float = 10.0
    """Without a picture for so long, the stream counts as lost."""


class BoxedStream:
    """The confined process, seen from outside: bytes in, frames out.

    One thread writes, one reads the frames, any may `kill`.

    The process ends when it is killed, when the thread that made this object ends, and when the
    stream is decoded to its end. Where it has used its share of the processors it is stopped until
    there is more, whatever it was doing.
    """

    def __init__(self, limits: StreamLimits, share: Share | None = None) -> None:
        """Without a share of several cameras' it has one processor."""
        self._limits, self._share = limits, share or Shares(1.0).share()
        self._lock = threading.Lock()
        self._used_s = self._look_s = 0.0
        self._stopped_s: float | None = None
        """Since when the process is stopped; none while it runs."""
        self._lost_s = 0.0
        """For how long it was stopped before."""
        self._socket, theirs = socket.socketpair()
        settings = {"bounds": asdict(limits.bounds), "memory_bytes": limits.memory_bytes}
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        search = os.pathsep.join(filter(None, sys.path))  # it finds what this process finds
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
        os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)

    @property
    def pid(self) -> int:
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
        if self._receive(HEADER.size, self._now_s() + _START_S) is None:
            raise MediaError("no process can be started to decode it; see whether memory is short")
        while True:
            deadline_s = self._now_s() + self._limits.silent_s
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
        with self._lock:
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
            self._look()
            if (left_s := deadline_s - self._now_s()) <= 0:
                raise MediaError(
                    f"no picture came for {self._limits.silent_s:g} s; see whether the camera runs"
                )
            if not _is_readable(self._socket, min(left_s, LOOK_S)):
                continue
            try:
                received = self._socket.recv_into(view[num_received:])
            except ConnectionError:
                return None
            if not received:
                return None
            num_received += received
        return content

    def _look(self) -> None:
        """Stop the process where it has used its share, and let it go on where it has some."""
        if (now_s := time.monotonic()) < self._look_s:
            return
        self._look_s = now_s + LOOK_S
        with self._lock:
            if self._process.returncode is not None:
                return  # its number may be another's
            try:
                used_s = ProcessState.of(self.pid).cpu_s
            except (OSError, LookupError):
                return
            may_run = self._share.spend(used_s - self._used_s)
            self._used_s = used_s
            if may_run and self._stopped_s is not None:
                self._lost_s += now_s - self._stopped_s
                self._stopped_s = None
                self._process.send_signal(signal.SIGCONT)
            elif not may_run and self._stopped_s is None:
                self._stopped_s = now_s
                self._process.send_signal(signal.SIGSTOP)

    def _now_s(self) -> float:
        """The process's clock, which stands while it is stopped: only it is to be waited for."""
        now_s = time.monotonic() if self._stopped_s is None else self._stopped_s
        return now_s - self._lost_s


def _is_readable(sock: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()  # select() takes no descriptor above 1023
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _printable(text: bytes | bytearray) -> str:
    said = bytes(text).decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in said)


class ByteStream(Protocol):
    """The bytes of a video as a camera sends them."""

    def chunks(self) -> Iterator[bytes]:
        """Connect and yield bytes. Returning is the stream's end; an error is its loss."""

    @property
    def is_recorded(self) -> bool:
        """Whether the bytes are a whole recording's, which come faster than it lasts."""

    def close(self) -> None:
        """End `chunks` soon. From any thread."""


class BoxedConnection:
    """A `Connection` that decodes nothing in this process."""

    def __init__(self, stream: ByteStream, limits: StreamLimits, share: Share | None) -> None:
        self._stream, self._limits, self._share = stream, limits, share
        self._lock = threading.Lock()
        self._pace = Pace()
        self._box: BoxedStream | None = None
        self._error: Exception | None = None
        self._has_come = False

    def frames(self) -> Iterator[TimedFrame]:
        """Yield the frames of the stream, those of a recording at its pace."""
        with self._lock:
            if self._pace.is_stopped:
                return
            box = self._box = BoxedStream(self._limits, self._share)
        feeder = threading.Thread(target=self._feed, args=(box,), daemon=True)
        feeder.start()
        try:
            for time_us, frame in box.frames():
                if self._stream.is_recorded and time_us is not None:
                    self._pace.wait_until(time_us)
                yield time_us, frame
        except HeadstartError as error:
            # Where no byte came, what broke the connection says more than the decoder can.
            raise error if self._has_come or self._error is None else self._error from error
        finally:
            self.close()
            feeder.join()
            box.close()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self._pace.stop()
        self._stream.close()
        with self._lock:
            if self._box is not None:
                self._box.kill()

    def _feed(self, box: BoxedStream) -> None:
        try:
            for chunk in self._stream.chunks():
                self._has_come = True
                box.write(chunk)
        except BrokenPipeError:
            pass  # the process has ended; `frames` says why
        except TimeoutError:
            self._error = SourceError(
                f"nothing came for {self._limits.silent_s:g} s; see whether the camera runs"
            )
        except (HeadstartError, OSError) as error:
            self._error = error
        except Exception as error:  # a stranger's bytes: whatever they cause, the stream is lost
            self._error = SourceError(f"what it sends makes no sense ({error}); restart the camera")
        finally:
            box.end()
