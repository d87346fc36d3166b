"""Posts rows of JSON to an HTTP address, from a thread of its own.

The caller never waits. A row is tried again until the receiver takes it; rows that come meanwhile
wait in a bounded queue, and the oldest of them are dropped and counted.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPException
from typing import Self
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from headstart.errors import LiveError

logger = logging.getLogger(__name__)

MAX_WAITING = 256
TIMEOUT_S = 10.0
"""Of one attempt: how long the receiver may be silent."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
GRACE_S = 5.0
"""How long `close` goes on delivering what waits."""
BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


@dataclass(frozen=True)
class HookCounts:
    """What became of the rows posted."""

    delivered: int = 0
    dropped: int = 0
    """Pushed out by newer ones, refused by the receiver, or still waiting at the end."""
    waiting: int = 0
    last_error: str | None = None


class Hook:
    """One receiver of rows. `post` may be called from any thread."""

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
        self._url = url
        self._receiver = f"{parts.scheme}://{parts.hostname}"  # the rest may hold a secret
        self._max_waiting, self._first_pause_s = max_waiting, first_pause_s
        self._timeout_s = timeout_s
        self._opener = build_opener(_NoRedirects)
        self._waiting: deque[bytes] = deque()
        self._counts = HookCounts()
        self._changed = threading.Condition()
        self._deadline_s: float | None = None
        """Set by `close`: until then what waits is delivered."""
        self._is_failing = False
        self._thread = threading.Thread(target=self._deliver_all, name="hook", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> HookCounts:
        """As of now."""
        with self._changed:
            return replace(self._counts, waiting=len(self._waiting))

    def post(self, row: Mapping[str, object]) -> None:
        """Have a row delivered, after those before it. Returns at once."""
        body = json.dumps(dict(row)).encode()
        with self._changed:
            if self._deadline_s is not None:
                self._count(dropped=1)
                return
            if len(self._waiting) == self._max_waiting:
                self._waiting.popleft()
                self._count(dropped=1)
            self._waiting.append(body)
            self._changed.notify_all()

    def close(self, grace_s: float = GRACE_S) -> None:
        """Deliver what waits, for at most ``grace_s``, and drop the rest."""
        with self._changed:
            if self._deadline_s is None:
                self._deadline_s = time.monotonic() + grace_s
            self._changed.notify_all()
        self._thread.join(grace_s)
        with self._changed:
            self._count(dropped=len(self._waiting))
            self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _deliver_all(self) -> None:
        while (body := self._next()) is not None:
            if self._deliver(body):
                self._count(delivered=1)
            else:
                self._count(dropped=1)

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._deadline_s is not None)
            return self._waiting.popleft() if self._waiting else None

    def _deliver(self, body: bytes) -> bool:
        """Whether the receiver took it, in the end."""
        pause_s = self._first_pause_s
        while not self._is_over():
            try:
                self._send(body)
                self._is_failing = False
                return True
            except HTTPError as error:
                error.close()
                self._note(f"{error.code} {error.reason}")
                if error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in BUSY:
                    return False  # it would be refused again
            except (OSError, HTTPException) as error:
                self._note(str(error) or type(error).__name__)
            self._pause(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    def _send(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "headstart"}
        request = Request(self._url, data=body, headers=headers, method="POST")
        with self._opener.open(request, timeout=self._timeout_s):
            pass

    def _pause(self, seconds: float) -> None:
        with self._changed:
            if self._deadline_s is not None:
                time_left_s = max(0.0, self._deadline_s - time.monotonic())
                self._changed.wait_for(lambda: False, min(seconds, time_left_s))
            else:
                self._changed.wait_for(lambda: self._deadline_s is not None, seconds)

    def _is_over(self) -> bool:
        with self._changed:
            return self._deadline_s is not None and time.monotonic() >= self._deadline_s

    def _note(self, error: str) -> None:
        with self._changed:
            self._counts = replace(self._counts, last_error=error)
        if not self._is_failing:  # once for each time that it goes away
            self._is_failing = True
            logger.warning("%s does not take answers: %s", self._receiver, error)

    def _count(self, delivered: int = 0, dropped: int = 0) -> None:
        with self._changed:  # a condition's lock may be taken again by its owner
            self._counts = replace(
                self._counts,
                delivered=self._counts.delivered + delivered,
                dropped=self._counts.dropped + dropped,
            )


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST becomes a GET without the row: it counts as refused instead."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None
