"""A client of a server's memory routes: to see, take along, bring and forget what it remembers.

It needs nothing but Python, and no engine.
"""

import contextlib
import json
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request

from headstart.errors import ServerRefusedError
from headstart.live.sinks.hook import opener_with

PATH = "/v1/headstart/memory"
TIMEOUT_S = 60.0
MAX_LISTED = 1000
"""Rows of a page; a server gives no more at once."""


@dataclass(frozen=True)
class MemoryClient:
    """The memory of one tenant on one server."""

    url: str
    """Of the server: ``http://host:port``."""
    key: str = ""

    def streams(self) -> dict[str, Any]:
        """What is remembered: a row for each stream under ``data``, and for how long it is kept.

        Asked for page by page.
        """
        found = self.page()
        while found["cursor"] is not None:
            more = self.page(found["cursor"])
            found = {**more, "data": [*found["data"], *more["data"]]}
        return found

    def page(self, cursor: str | None = None, limit: int = MAX_LISTED) -> dict[str, Any]:
        """Some of the rows, by name, and under ``cursor`` what to ask the next page with."""
        after = {} if cursor is None else {"cursor": cursor}
        found: dict[str, Any] = json.loads(self._request("GET", "", limit=str(limit), **after))
        # An older server knows no pages: it lists all.
        return {"cursor": None, **found}

    def export(self, stream: str) -> bytes:
        """A stream's memory, sealed by the server."""
        return self._request("GET", "/export", stream=stream)

    def restore(self, stream: str, sealed: bytes) -> dict[str, Any]:
        """Have a stream remember what a sealed memory holds; what the server says to it."""
        said: dict[str, Any] = json.loads(self._request("POST", "/import", sealed, stream=stream))
        return said

    def forget(self, stream: str) -> None:
        """Have a stream forgotten."""
        self._request("DELETE", "", stream=stream)

    def forget_all(self) -> None:
        """Have all streams of this key's tenant forgotten."""
        self._request("DELETE", "", all="true")

    def _request(self, method: str, path: str, body: bytes | None = None, /, **query: str) -> bytes:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerRefusedError(f"{self.url!r} is no server's address: http://HOST:PORT")
        address = f"{self.url.rstrip('/')}{PATH}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Content-Type": "application/octet-stream"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = Request(address, data=body, headers=headers, method=method)
        try:
            with opener_with(ProxyHandler({})).open(request, timeout=TIMEOUT_S) as response:
                content: bytes = response.read()
                return content
        except HTTPError as error:
            raise ServerRefusedError(_said(error)) from error
        except (URLError, OSError, HTTPException) as error:
            raise ServerRefusedError(f"{self.url} cannot be reached: {error}") from error


def _said(error: HTTPError) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError, OSError):
        return str(json.loads(error.read())["error"]["message"])
    if (elsewhere := error.headers.get("location")) is not None:
        return f"the server says to ask {elsewhere} instead: give that address, if it is yours"
    return f"the server refused with status {error.code}; see whether it is headstart's"
