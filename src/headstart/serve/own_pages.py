"""Which web pages may use a server that asks for no keys.

A browser lets any page send requests to any address. A server with keys is safe from that: a page
has no key unless somebody gives it one.
"""

import ipaddress
from http import HTTPStatus
from urllib.parse import urlsplit

from headstart.serve import metrics
from headstart.serve.refusal import RefusedError
from headstart.serve.request_context import RequestContext
from headstart.serve.settings import Settings


def check_page(settings: Settings, context: RequestContext) -> None:
    """Raise a refusal where a page of another site is behind a request to an open server."""
    if settings.open and not _is_own_page(settings, context):
        metrics.TURNED_AWAY.labels("origin").inc()
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            "this server asks for no keys, so pages of other sites may not use it; name this"
            " page's origin in origins, under [server] of its settings",
        )


def _is_own_page(settings: Settings, context: RequestContext) -> bool:
    """Whether no web page of another site is behind this request.

    A browser names the page's origin, and a page cannot change it. A name that leads to this
    machine may be another site's own, so only addresses and localhost count as ours.
    """
    origin = context.header(b"origin").lower()
    if not origin or origin in settings.origins:
        return True
    host = context.header(b"host").lower()
    return origin in (f"http://{host}", f"https://{host}") and _is_address(host)


def _is_address(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
