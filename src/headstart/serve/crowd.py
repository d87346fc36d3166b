"""How many requests are under way: altogether, and of each tenant."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from headstart.serve import figures
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits

RETRY_AFTER_S = 1


class Crowd:
    """Used from one event loop only."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._of_tenant: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    @property
    def size(self) -> int:
        """Requests under way."""
        return self._of_tenant.total()

    @contextmanager
    def joined(self, tenant: str) -> Iterator[None]:
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
            raise _busy("too many requests are under way")
        if self._of_tenant[tenant] >= self._limits.max_tenant_requests:
            figures.TURNED_AWAY.labels("tenant").inc()
            raise _busy("too many of your requests are under way")
        self._of_tenant[tenant] += 1
        self._empty.clear()
        figures.IN_FLIGHT.set(self.size)
        try:
            yield
        finally:
            self._of_tenant[tenant] -= 1
            if not self._of_tenant[tenant]:
                del self._of_tenant[tenant]
            if not self.size:
                self._empty.set()
            figures.IN_FLIGHT.set(self.size)

    async def drain(self, timeout_s: float) -> bool:
        """Let nobody in any more and wait for the last to leave; whether they all did."""
        self.draining = True
        figures.DRAINING.set(1)
        try:
            await asyncio.wait_for(self._empty.wait(), timeout_s)
        except TimeoutError:
            return False
        return True


def _busy(reason: str) -> RefusedError:
    message = f"{reason}; ask again in {RETRY_AFTER_S} s"
    return RefusedError(HTTPStatus.TOO_MANY_REQUESTS, message, RETRY_AFTER_S)
