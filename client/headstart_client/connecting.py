"""Opens a live socket of a server, and says why if it does not."""

import contextlib
import json
from typing import Any
from urllib.parse import quote, urlsplit

from headstart.errors import LiveError
from headstart_client.wire import PATH, SUBPROTOCOL

OPEN_S = 20.0
"""How long a server may take to answer."""


def address_of(url: str) -> str:
    """The live socket of a server."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not parts.hostname or parts.path not in ("", "/", PATH):
        raise LiveError(f"{url!r} is no server's address: give ws://HOST:PORT or wss://HOST:PORT")
    return f"{scheme}://{parts.netloc}{PATH}"


def connect_to(address: str, key: str, stream: str) -> Any:
    """An open connection. Raises `LiveError` if the server refuses, `OSError` if there is none.

    The header ``X-Session-ID`` names the stream, for a router that keeps streams to servers.
    """
    try:
        from websockets.exceptions import InvalidHandshake, InvalidStatus
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol
    except ImportError as error:
        raise LiveError(
            "the live client needs websockets: pip install 'headstart[client]'"
        ) from error
    headers = {"X-Session-ID": quote(stream)}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        return connect(
            address,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            additional_headers=headers,
            compression=None,
            open_timeout=OPEN_S,
        )
    except InvalidStatus as error:
        raise LiveError(_refusal(error.response.status_code, error.response.body)) from error
    except InvalidHandshake as error:
        raise LiveError(f"{address} is no live socket of headstart: {error}") from error


def _refusal(status: int, body: bytes | bytearray | None) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(body or b"")["error"]["message"])
    return f"the server refused with status {status}; see whether it is headstart's"
