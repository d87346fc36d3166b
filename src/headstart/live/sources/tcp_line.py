"""A TCP connection to a camera: another thread can end it, and it is read no faster than it may.

Where a camera sends more, it waits, as TCP has it do.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headstart.errors import SourceError
from headstart.live.sources.confined.shares import Share, Shares

CONNECT_S = 10.0
MAX_BYTES_S = 32 << 20
"""Of one camera: what H.264 allows for pictures of 4096x2304, and more than JPEGs of them need."""
LOOK_CPU_S = 0.01
"""After so much processor time the thread asks whether any is left to it."""
PAUSE_S = 0.1
"""So long it waits before it asks again."""


class TcpLine:
    """Connects once. `close` ends connecting and reading alike."""

    def __init__(self, silent_s: float, share: Share | None = None) -> None:
        self._silent_s = silent_s
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.flow = Flow(self._stopped.wait, share)
        """Whoever reads tells it; a wait there ends with `close`, too."""

    def connect(self, host: str, port: int, *, tls: bool) -> socket.socket:
        """A connected socket; reading from it fails after ``silent_s`` without a byte."""
        deadline_s = time.monotonic() + CONNECT_S
        reason: OSError = TimeoutError("no answer")
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise SourceError(
                f"there is no host {host} ({error}); check the address, and the network"
            ) from error
        for family, kind, protocol, _, address in addresses:
            try:
                sock = self._keep(socket.socket(family, kind, protocol))
                self._dial(sock, address, deadline_s)
                if tls:
                    context = ssl.create_default_context()
                    sock = self._keep(context.wrap_socket(sock, server_hostname=host))
                return sock
            except ssl.SSLCertVerificationError as error:
                raise SourceError(
                    f"the certificate of {host} is not trusted ({error.verify_message}); add its"
                    " authority to the system's, or use the address without TLS"
                ) from error
            except OSError as error:
                reason = error
        raise SourceError(
            f"nothing answers at {host}:{port} ({reason}); check the address, and whether the"
            " camera runs"
        ) from reason

    def close(self) -> None:
        """End whatever is being waited for. From any thread."""
        self._stopped.set()
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Give the socket back, once nobody reads from it any more."""
        self.close()
        with self._lock:
            if self._socket is not None:
                self._socket.close()

    def _keep(self, sock: socket.socket) -> socket.socket:
        """Have `close` end this one, too; raises where it has been called already."""
        with self._lock:
            self._socket = sock
            if self._stopped.is_set():
                raise TimeoutError("closed")
        return sock

    def _dial(self, sock: socket.socket, address: Any, deadline_s: float) -> None:
        try:
            sock.settimeout(max(0.1, deadline_s - time.monotonic()))
            sock.connect(address)
        except OSError:
            sock.close()
            raise
        sock.settimeout(self._silent_s)


class Flow:
    """How fast a connection is read. Used by the thread that reads it."""

    def __init__(
        self,
        wait: Callable[[float], bool],
        share: Share | None = None,
        max_bytes_s: float = MAX_BYTES_S,
        clock: Callable[[], float] = time.monotonic,
        thread_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """``wait`` waits for so many seconds; True where nobody reads any more."""
        self._wait, self._max_bytes_s = wait, max_bytes_s
        self._clock, self._thread_clock = clock, thread_clock
        self._share = share or Shares(1.0).share()
        self._left, self._seen_s = max_bytes_s, clock()
        self._used_s: float | None = None

    def passed(self, num_bytes: int) -> None:
        """So many bytes were read; wait where they were too many. A second's worth is free."""
        now_s = self._clock()
        self._left += (now_s - self._seen_s) * self._max_bytes_s
        self._left, self._seen_s = min(self._left, self._max_bytes_s) - num_bytes, now_s
        if self._left < 0:
            self._wait(-self._left / self._max_bytes_s)
        self._rest()

    def _rest(self) -> None:
        """Wait while the thread has used its share of the processors."""
        used_s = self._thread_clock()
        more_s = 0.0 if self._used_s is None else used_s - self._used_s
        if self._used_s is not None and more_s < LOOK_CPU_S:
            return
        self._used_s = used_s
        while not self._share.spend(more_s):
            if self._wait(PAUSE_S):
                return
            more_s = 0.0
