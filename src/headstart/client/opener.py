"""Opens HTTP addresses that a key is sent to, and never another in their place.

A redirect would take the key along to whoever the answer names, so it counts as a refusal. Nor is a
proxy of the environment asked: it would be sent the key too.
"""

from collections.abc import Mapping
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener


def ask(
    method: str, address: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float
) -> bytes:
    """What the address answers. Raises `HTTPError` where it refuses or redirects."""
    request = Request(address, data=body, headers=dict(headers), method=method)
    opener = build_opener(_NoRedirects, ProxyHandler({}))
    with opener.open(request, timeout=timeout_s) as response:
        content: bytes = response.read()
        return content


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None
