"""Who may come in, over HTTP and over live sockets: keys, pages, requests in flight, memory, rates.

A server that asks for no keys looks at the web page behind a request. A browser lets any page send
requests to any address; a server with keys is safe from that, as a page has no key unless somebody
gives it one. And a page's own name may be made to lead to this machine: its browser then takes the
server for a part of that page's site, and names no origin.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

from headstart_server import memory_pressure, metrics
from headstart_server.auth import ANYONE, Caller, KeyFile
from headstart_server.delays import RequestDelays
from headstart_server.limits import Limits
from headstart_server.memory_pressure import MemoryPressure
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError, too_much
from headstart_server.request_context import RequestContext
from headstart_server.settings import Settings

RETRY_AFTER_S = 1
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER_SITES = frozenset({"cross-site", "same-site"})
"""A page of the same site may be another server's: cookies know no ports."""


class RequestsInFlight:
    """Used from one event loop only."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in_flight: Counter[str] = Counter()
        self._body_bytes: Counter[str] = Counter()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self.draining = False

    @property
    def num(self) -> int:
        return self._in_flight.total()

    def num_of(self, tenant: str) -> int:
        return self._in_flight[tenant]

    @contextmanager
    def admit(self, tenant: str) -> Iterator["Slot"]:
        """Count a request as in flight until the block is left, or raise a refusal."""
        self.check_not_draining()
        if self.num >= self._limits.max_requests:
            metrics.TURNED_AWAY.labels("full").inc()
            raise too_much("too many requests are in flight")
        if self._in_flight[tenant] >= self._limits.max_tenant_requests:
            metrics.TURNED_AWAY.labels("tenant").inc()
            raise too_much("too many of your requests are in flight")
        slot = Slot(self, tenant)
        self._change(tenant, 1)
        self._is_idle.clear()
        try:
            yield slot
        finally:
            self._change(tenant, -1)
            self._body_bytes[tenant] -= slot.num_bytes
            if not self._in_flight[tenant]:
                del self._in_flight[tenant]
                del self._body_bytes[tenant]
            if not self.num:
                self._is_idle.set()

    def check_not_draining(self) -> None:
        """Raise a refusal while the server is being stopped."""
        if self.draining:
            metrics.TURNED_AWAY.labels("draining").inc()
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "this server is being stopped; ask another, or again later",
                RETRY_AFTER_S,
            )

    def add_body_bytes(self, tenant: str, num_bytes: int) -> None:
        """Count more bytes of a tenant's bodies, or raise a refusal."""
        if self._body_bytes.total() + num_bytes > self._limits.max_bodies_bytes:
            metrics.TURNED_AWAY.labels("full").inc()
            raise too_much("the requests in flight are too long together")
        held = self._body_bytes[tenant] + num_bytes
        if held > self._limits.max_tenant_bodies_bytes:
            metrics.TURNED_AWAY.labels("tenant").inc()
            raise too_much("your requests in flight are too long together")
        self._body_bytes[tenant] = held

    async def drain(self, timeout_s: float) -> bool:
        """Admit no request any more and wait for those in flight; whether all of them ended."""
        self.draining = True
        metrics.DRAINING.set(1)
        try:
            await asyncio.wait_for(self._is_idle.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    def _change(self, tenant: str, by: int) -> None:
        self._in_flight[tenant] += by
        metrics.count_in_flight(tenant, self._in_flight[tenant], self.num)


class Slot:
    """One request in flight, and how much of its body has arrived."""

    def __init__(self, requests: RequestsInFlight, tenant: str) -> None:
        self._requests = requests
        self._tenant = tenant
        self.num_bytes = 0

    def set_body_bytes(self, num_bytes: int) -> None:
        """Count the body as this long by now, or raise a refusal."""
        if num_bytes > self.num_bytes:
            self._requests.add_body_bytes(self._tenant, num_bytes - self.num_bytes)
            self.num_bytes = num_bytes


class Admission:
    """Used from one event loop only."""

    def __init__(self, settings: Settings, quota: Quota, tell: Callable[[str], None]) -> None:
        """``tell`` is called with what became of the file of keys when it changes."""
        self._is_open = settings.open
        self._keys = KeyFile(settings.keys, settings.path, tell)
        self.quota = quota
        self.delays = RequestDelays()
        self.memory = MemoryPressure(settings.limits.min_free_bytes, memory_pressure.free_bytes)
        self.requests = RequestsInFlight(settings.limits)

    def caller(self, authorization: str) -> Caller | None:
        """Whose ``Bearer`` key a header holds, as of now; none without a valid key."""
        return ANYONE if self._is_open else self._keys.keys.caller(authorization)

    def has_tenant(self, name: str) -> bool:
        """Whether a tenant has a valid key, as of now; on an open server there is only one."""
        return self._is_open or self._keys.keys.has_tenant(name)

    @contextmanager
    def admit(self, tenant: str) -> Iterator[Slot]:
        with self.requests.admit(tenant) as slot:
            self.memory.admit()
            self.quota.admit(tenant)
            yield slot


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
