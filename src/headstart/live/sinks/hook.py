"""Posts rows of JSON to an HTTP address, from a thread of its own.

The caller never waits. A row is tried again until the receiver takes it; rows that come meanwhile
wait in a bounded queue, and the oldest of them are dropped and counted.
"""

import json
import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import Self
from urllib.error import HTTPError
from urllib.parse import urlsplit

from headstart.errors import LiveError
from headstart.live.sinks.http_post import HttpPost
from headstart.live.sinks.outbox import FIRST_PAUSE_S, GRACE_S, MAX_WAITING, DeliveryCounts, Outbox

TIMEOUT_S = 10.0
"""Of one attempt, from its beginning to the last byte of the answer's head."""
STOP_S = 1.0
"""How long `close` waits for the thread once the attempt under way is ended."""
BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


class Hook:
    """An `AnswerSink` that is an HTTP address."""

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

    @property
    def counts(self) -> DeliveryCounts:
        return self._outbox.counts

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

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
