"""A TCP connection that another thread can end at any moment."""

import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Any

from headstart.errors import SourceError
from headstart.live.sources.confined.shares import Share
from headstart.live.sources.flow import Flow

CONNECT_S = 10.0


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
