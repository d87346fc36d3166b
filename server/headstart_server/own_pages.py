"""Which web pages may use a server that asks for no keys.

A browser lets any page send requests to any address. A server with keys is safe from that: a page
has no key unless somebody gives it one. And a page's own name may be made to lead to this machine:
its browser then takes the server for a part of that page's site, and names no origin.
"""

import ipaddress
from http import HTTPStatus
from urllib.parse import urlsplit

from headstart_server import metrics
from headstart_server.refusal import RefusedError
from headstart_server.request_context import RequestContext
from headstart_server.settings import Settings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER_SITES = frozenset({"cross-site", "same-site"})
"""A page of the same site may be another server's: cookies know no ports."""


def check_page(settings: Settings, context: RequestContext) -> None:
    """Raise a refusal where a page of another site may be behind a request to an open server."""
    if not settings.open:
        return
    host = context.header(b"host").lower()
    if host and not _is_own_name(settings, host):
        metrics.TURNED_AWAY.labels("host").inc()
        raise RefusedError(
            HTTPStatus.MISDIRECTED_REQUEST,
            "this server asks for no keys, so it answers to addresses and to localhost, and not to"
            " names that any web site could lead here; name this one in origins, under [server] of"
            ' its settings, such as origins = ["http://NAME:PORT"], or give the server keys',
        )
    if not _is_own_page(settings, context, host):
        metrics.TURNED_AWAY.labels("origin").inc()
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            "this server asks for no keys, so pages of other sites may not use it; name this"
            " page's origin in origins, under [server] of its settings",
        )


def _is_own_name(settings: Settings, host: str) -> bool:
    """Whether no other site's page can have this server under this name."""
    named = {urlsplit(origin).hostname for origin in settings.origins}
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name not in named and name not in ("localhost", settings.host.lower()):
            ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_own_page(settings: Settings, context: RequestContext, host: str) -> bool:
    """Whether no web page of another site is behind this request.

    A browser names the page's origin, and a page cannot change it, except where it follows a link
    or asks for a picture. Then it only says whether the page is of the same origin.
    """
    origin = context.header(b"origin").lower()
    if origin:
        return origin in settings.origins or (
            bool(host) and origin in (f"http://{host}", f"https://{host}")
        )
    is_safe = context.scope.get("method", "GET") in SAFE_METHODS
    return is_safe or context.header(b"sec-fetch-site").lower() not in _OTHER_SITES
