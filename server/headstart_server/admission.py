"""Bounds the requests in flight and the bytes of their bodies, of all tenants and of each."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from headstart_server import metrics
from headstart_server.refusal import RefusedError, too_much
from headstart_server.settings import Limits

RETRY_AFTER_S = 1


class Admission:
    """Used from one event loop only."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in_flight: Counter[str] = Counter()
        self._body_bytes: Counter[str] = Counter()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self.draining = False

    @property
    def num_in_flight(self) -> int:
        """Requests in flight, of all tenants."""
        return self._in_flight.total()

    def num_in_flight_of(self, tenant: str) -> int:
        """Requests in flight, of one tenant."""
        return self._in_flight[tenant]

    @contextmanager
    def admit(self, tenant: str) -> Iterator["Slot"]:
        """Count a request as in flight until the block is left, or raise a refusal."""
        self.check_open()
        if self.num_in_flight >= self._limits.max_requests:
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
            if not self.num_in_flight:
                self._is_idle.set()

    def check_open(self) -> None:
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
        metrics.count_in_flight(tenant, self._in_flight[tenant], self.num_in_flight)


class Slot:
    """One request in flight, and how much of its body has arrived."""

    def __init__(self, admission: Admission, tenant: str) -> None:
        self._admission = admission
        self._tenant = tenant
        self.num_bytes = 0

    def set_body_bytes(self, num_bytes: int) -> None:
        """Count the body as this long by now, or raise a refusal."""
        if num_bytes > self.num_bytes:
            self._admission.add_body_bytes(self._tenant, num_bytes - self.num_bytes)
            self.num_bytes = num_bytes
