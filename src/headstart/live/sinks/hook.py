"""Posts rows of JSON to an HTTP address, from a thread of its own.

The caller never waits. A row is tried again until the receiver takes it; rows that come meanwhile
wait in a bounded queue, and the oldest of them are dropped and counted. Nothing is sent to another
address in place of the one that was given: a redirect would take a key along to whoever the
receiver names, and makes a GET without the answer of a POST, so it is a refusal.
"""

import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    BaseHandler,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from headstart.errors import LiveError
from headstart.live.sinks.outbox import FIRST_PAUSE_S, GRACE_S, MAX_WAITING, AnswerSink, Outbox

TIMEOUT_S = 10.0
"""Of one attempt, from its beginning to the last byte of the answer's head."""
STOP_S = 1.0
"""How long `close` waits for the thread once the attempt under way is ended."""
BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


class Hook(AnswerSink):
    """A receiver that is an HTTP address."""

    def __init__(
        self,
        url: str,
        *,
        max_waiting: int = MAX_WAITING,
        first_pause_s: float = FIRST_PAUSE_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise LiveError(
                f"{url!r} is no address to post to: give http://HOST/PATH or https://HOST/PATH"
            )
        self._url, self._timeout_s = url, timeout_s
        self._lock = threading.Lock()
        self._attempt: HttpPost | None = None
        self._is_cut = False
        receiver = f"{parts.scheme}://{parts.hostname}"  # the rest may hold a secret
        self._outbox: Outbox[bytes] = Outbox(receiver, max_waiting, first_pause_s)
        self._thread = threading.Thread(target=self._deliver_all, name="hook", daemon=True)
        self._thread.start()

    def post(self, row: Mapping[str, object]) -> None:
        self._outbox.put(json.dumps(dict(row)).encode())

    def close(self, grace_s: float = GRACE_S) -> None:
        self._outbox.close(grace_s)
        self._thread.join(grace_s)
        with self._lock:
            self._is_cut = True
            if self._attempt is not None:
                self._attempt.end()
        self._thread.join(STOP_S)
        self._outbox.abandon()

    def _deliver_all(self) -> None:
        while not self._outbox.is_over:
            self._outbox.wait_until_due()
            body = self._outbox.take()
            if body is not None and not self._is_settled(body):
                self._outbox.pause()

    def _is_settled(self, body: bytes) -> bool:
        """Whether the receiver has taken or refused it; else it is to be tried again."""
        try:
            self._send(body)
        except HTTPError as error:
            error.close()
            self._outbox.note_failure(f"{error.code} {error.reason}")
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in BUSY:
                return False
            self._outbox.settle(is_delivered=False)  # it would be refused again
        except Exception as error:  # whatever an answer, or an address, leads urllib to
            self._outbox.note_failure(str(error) or type(error).__name__)
            return False
        else:
            self._outbox.settle(is_delivered=True)
        return True

    def _send(self, body: bytes) -> None:
        attempt = HttpPost(self._url, body, self._timeout_s)
        with self._lock:
            self._attempt = attempt
            if self._is_cut:
                attempt.end()
        attempt.send()


class HttpPost:
    """One attempt to post a body, which ends in time whatever the receiver does.

    ``timeout_s`` is of the whole of it: a receiver that drips is never silent for long.
    """

    def __init__(self, url: str, body: bytes, timeout_s: float) -> None:
        self._url, self._body, self._timeout_s = url, body, timeout_s
        self._deadline_s = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._handle: socket.socket | None = None
        """A second descriptor of the connection, which ends it also while TLS is agreed on."""
        self._is_ended = False

    def send(self) -> None:
        """Return once the receiver has taken it; else raise what `urllib` does."""
        opener = opener_with(_Dialling(self))
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


class _Dialling(HTTPHandler, HTTPSHandler):
    """Opens addresses over connections that the attempt can end."""

    def __init__(self, post: HttpPost) -> None:
        super().__init__()
        self._post = post

    def http_open(self, req: Request) -> Any:
        return self.do_open(self._http, req)

    def https_open(self, req: Request) -> Any:
        return self.do_open(self._https, req)

    def _http(self, host: str, **options: Any) -> HTTPConnection:
        return self._dialled(HTTPConnection(host, **options))

    def _https(self, host: str, **options: Any) -> HTTPConnection:
        return self._dialled(HTTPSConnection(host, **options))

    def _dialled(self, connection: HTTPConnection) -> HTTPConnection:
        connection._create_connection = self._post.dial  # type: ignore[attr-defined]
        return connection


def opener_with(*handlers: BaseHandler) -> OpenerDirector:
    """One that raises `HTTPError` where it is redirected."""
    return build_opener(_NoRedirects, *handlers)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None
