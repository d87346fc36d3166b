"""What is under way: requests and the bytes of their bodies, altogether and of each tenant."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from headstart.serve import figures
from headstart.serve.refusal import RefusedError, too_much
from headstart.serve.settings import Limits

RETRY_AFTER_S = 1


class Crowd:
    """Used from one event loop only."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._of_tenant: Counter[str] = Counter()
        self._bytes_of_tenant: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    @property
    def size(self) -> int:
        """Requests under way."""
        return self._of_tenant.total()

    def size_of(self, tenant: str) -> int:
        """Requests of one tenant under way."""
        return self._of_tenant[tenant]

    @contextmanager
    def joined(self, tenant: str) -> Iterator["Place"]:
        """A place among them, or a refusal that says when to come back."""
        if self.draining:
            figures.TURNED_AWAY.labels("draining").inc()
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "this server is being stopped; ask another, or again later",
                RETRY_AFTER_S,
            )
        if self.size >= self._limits.max_requests:
            figures.TURNED_AWAY.labels("full").inc()
            raise too_much("too many requests are under way")
        if self._of_tenant[tenant] >= self._limits.max_tenant_requests:
            figures.TURNED_AWAY.labels("tenant").inc()
            raise too_much("too many of your requests are under way")
        place = Place(self, tenant)
        self._change(tenant, 1)
        self._empty.clear()
        try:
            yield place
        finally:
            self._change(tenant, -1)
            self._bytes_of_tenant[tenant] -= place.num_bytes
            if not self._of_tenant[tenant]:
                del self._of_tenant[tenant]
                del self._bytes_of_tenant[tenant]
            if not self.size:
                self._empty.set()

    def hold(self, tenant: str, num_bytes: int) -> None:
        """Count more bytes of a body, or raise a refusal that says when to come back."""
        if self._bytes_of_tenant.total() + num_bytes > self._limits.max_bodies_bytes:
            figures.TURNED_AWAY.labels("full").inc()
            raise too_much("the requests under way are too long together")
        held = self._bytes_of_tenant[tenant] + num_bytes
        if held > self._limits.max_tenant_bodies_bytes:
            figures.TURNED_AWAY.labels("tenant").inc()
            raise too_much("your requests under way are too long together")
        self._bytes_of_tenant[tenant] = held

    async def drain(self, timeout_s: float) -> bool:
        """Let nobody in any more and wait for the last to leave; whether they all did."""
        self.draining = True
        figures.DRAINING.set(1)
        try:
            await asyncio.wait_for(self._empty.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    def _change(self, tenant: str, by: int) -> None:
        self._of_tenant[tenant] += by
        figures.count_in_flight(tenant, self._of_tenant[tenant], self.size)


class Place:
    """One request under way, and what of its body has arrived."""

    def __init__(self, crowd: Crowd, tenant: str) -> None:
        self._crowd = crowd
        self._tenant = tenant
        self.num_bytes = 0

    def hold(self, num_bytes: int) -> None:
        """So many bytes of the body are kept by now."""
        if num_bytes > self.num_bytes:
            self._crowd.hold(self._tenant, num_bytes - self.num_bytes)
            self.num_bytes = num_bytes
