"""One attempt to post a body, which ends in time whatever the receiver does.

Nothing is sent to another address in place of the one that was given. A redirect would take a key
along to whoever the receiver names, and makes a GET without the answer of a POST: it is a refusal.
"""

import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.request import (
    BaseHandler,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)


class HttpPost:
    """Sent once. `end` ends it from any thread."""

    def __init__(self, url: str, body: bytes, timeout_s: float) -> None:
        """``timeout_s``: of the whole attempt. A receiver that drips is never silent for long."""
        self._url, self._body, self._timeout_s = url, body, timeout_s
        self._deadline_s = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._handle: socket.socket | None = None
        """A second descriptor of the connection, which ends it also while TLS is agreed on."""
        self._is_ended = False

    def send(self) -> None:
        """Return once the receiver has taken it; else raise what `urllib` does."""
        opener = opener_with(_Http(self), _Https(self))
        headers = {"Content-Type": "application/json", "User-Agent": "headstart"}
        request = Request(self._url, data=self._body, headers=headers, method="POST")
        alarm = threading.Timer(self._timeout_s, self.end)
        alarm.daemon = True
        alarm.start()
        try:
            with opener.open(request, timeout=self._timeout_s):
                self._check()  # what was cut off reads like an answer that ends there
        except Exception:
            self._check()
            raise
        finally:
            alarm.cancel()
            self._release()

    def end(self) -> None:
        """Have `send` fail soon, whatever it waits for. From any thread."""
        with self._lock:
            self._is_ended = True
            if self._handle is not None:
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)

    def dial(self, address: tuple[str, int], *more: Any) -> socket.socket:
        """A connected socket that `end` ends; in place of `socket.create_connection`."""
        reason: OSError = TimeoutError("no answer")
        for family, kind, protocol, _, place in socket.getaddrinfo(
            *address, type=socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                self._keep(sock.dup())
                sock.settimeout(max(0.001, self._deadline_s - time.monotonic()))
                sock.connect(place)
            except OSError as error:
                sock.close()
                reason = error
            else:
                return sock
        raise reason

    def _keep(self, handle: socket.socket) -> None:
        self._release()
        with self._lock:
            self._handle = handle
        self._check()

    def _check(self) -> None:
        with self._lock:
            if self._is_ended:
                raise TimeoutError("it did not answer in time")

    def _release(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None


class _Http(HTTPHandler):
    def __init__(self, post: HttpPost) -> None:
        super().__init__()
        self._post = post

    def http_open(self, req: Request) -> Any:
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **options: Any) -> HTTPConnection:
        return _dialled(HTTPConnection(host, **options), self._post)


class _Https(HTTPSHandler):
    def __init__(self, post: HttpPost) -> None:
        super().__init__()
        self._post = post

    def https_open(self, req: Request) -> Any:
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **options: Any) -> HTTPConnection:
        return _dialled(HTTPSConnection(host, **options), self._post)


def _dialled(connection: HTTPConnection, post: HttpPost) -> HTTPConnection:
    connection._create_connection = post.dial  # type: ignore[attr-defined]
    return connection


def opener_with(*handlers: BaseHandler) -> OpenerDirector:
    """One that raises `HTTPError` where it is redirected."""
    return build_opener(_NoRedirects, *handlers)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None
