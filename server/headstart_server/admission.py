"""Who may come in, over HTTP and over live sockets: keys, pages, requests in flight, memory, rates.

A server that asks for no keys looks at the web page behind a request. A browser lets any page send
requests to any address; a server with keys is safe from that, as a page has no key unless somebody
gives it one. And a page's own name may be made to lead to this machine: its browser then takes the
server for a part of that page's site, and names no origin.

While the machine, or the cgroup of this process, is short of memory, no request comes in: otherwise
the kernel would kill the process, and with it every request.
"""

import asyncio
import ipaddress
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from headstart_server import metrics
from headstart_server.auth import ANYONE, Caller, KeyFile
from headstart_server.delays import RequestDelays
from headstart_server.limits import Limits
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError, too_much
from headstart_server.request_context import RequestContext
from headstart_server.settings import Settings

RETRY_AFTER_S, MEMORY_RETRY_AFTER_S = 1, 5
MEMORY_EVERY_S = 0.5
"""Free memory is read no more often."""
_NO_LIMIT = 1 << 60
"""A cgroup of version 1 without a limit states one of about 2 ** 63."""
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


class MemoryPressure:
    """Reads free memory at most every `MEMORY_EVERY_S`. Used from one event loop only."""

    def __init__(self, min_free_bytes: int, free_bytes: Callable[[], int]) -> None:
        self._min_free_bytes = min_free_bytes
        self._free_bytes = free_bytes
        self._last_bytes = free_bytes()
        self._checked_s = time.monotonic()

    @property
    def free_bytes(self) -> int:
        """Free memory, as of half a second ago at most."""
        if time.monotonic() - self._checked_s >= MEMORY_EVERY_S:
            self._checked_s = time.monotonic()
            self._last_bytes = self._free_bytes()
        return self._last_bytes

    @property
    def is_high(self) -> bool:
        """Whether too little memory is free to admit another request."""
        return self.free_bytes < self._min_free_bytes

    def admit(self) -> None:
        if self.is_high:
            metrics.TURNED_AWAY.labels("memory").inc()
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this server is short of memory; ask again in {MEMORY_RETRY_AFTER_S} s",
                MEMORY_RETRY_AFTER_S,
            )


class Admission:
    """Used from one event loop only."""

    def __init__(self, settings: Settings, quota: Quota, tell: Callable[[str], None]) -> None:
        """``tell`` is called with what became of the file of keys when it changes."""
        self._is_open = settings.open
        self._keys = KeyFile(settings.keys, settings.path, tell)
        self.quota = quota
        self.delays = RequestDelays()
        self.memory = MemoryPressure(settings.limits.min_free_bytes, free_bytes)
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


def require_key(caller: Caller | None, ways: str = "") -> Caller:
    """Who has shown a valid key; raises a refusal that says how to, for which there may be more
    ``ways``."""
    if caller is None:
        metrics.TURNED_AWAY.labels("key").inc()
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED, f"give a key: the header Authorization: Bearer KEY{ways}"
        )
    return caller


def require_tenant(caller: Caller, context: RequestContext) -> None:
    """Raise a refusal of an operator, who may only look."""
    if not caller.may_ask:
        context.details["operator"] = caller.name
        raise RefusedError(
            HTTPStatus.FORBIDDEN, "an operator's key only shows metrics; use a tenant's key"
        )


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


def free_bytes(root: Path = Path("/")) -> int:
    """How much this process may still take: the least that the machine and its cgroups have."""
    return min((_machine(root), *_cgroups(root)))


def _machine(root: Path) -> int:
    try:
        return _fields(root / "proc/meminfo")["MemAvailable:"] * 1024
    except (OSError, KeyError, ValueError):
        return _NO_LIMIT  # not Linux: free memory is unknown, so no request is refused


def _cgroups(root: Path) -> Iterator[int]:
    """Free memory of each cgroup of this process, version 2 and version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            mounts = [root / "sys/fs/cgroup/memory"]
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        for mount in mounts:
            # A parent's limit counts too. Inside a container the path may be the host's: missing
            # directories are skipped, and the mount's own directory is the container's.
            inside = mount / path.lstrip("/")
            for directory in (inside, *inside.parents):
                if directory.is_relative_to(mount):
                    yield _left(directory, *names)


def _left(directory: Path, limit: str, used: str, reclaimable: str) -> int:
    try:
        most = int((directory / limit).read_text())  # "max" is no number
        if most >= _NO_LIMIT:
            return _NO_LIMIT  # reading the other files takes the kernel a millisecond
        taken = int((directory / used).read_text())
        # Cached files count as used, but the kernel drops them before it kills a process.
        cached = _fields(directory / "memory.stat").get(reclaimable, 0)
    except (OSError, ValueError):
        return _NO_LIMIT
    return most - taken + cached


def _fields(path: Path) -> dict[str, int]:
    """Read a file of lines that are a name and a number."""
    return {words[0]: int(words[1]) for words in map(str.split, path.read_text().splitlines())}
