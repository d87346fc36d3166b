"""Who decodes next: tenants in turn, and none of them everywhere at once."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """So many at once, so many of one tenant. Used from one event loop only."""

    def __init__(self, at_once: int, at_once_each: int) -> None:
        self._at_once = at_once
        self._at_once_each = at_once_each
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Waits until it is this tenant's turn, and holds it."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(mine)
        self._go_on()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._leave(tenant)  # it had its turn just now
            else:
                mine.cancel()
            raise
        try:
            yield
        finally:
            self._leave(tenant)

    def _leave(self, tenant: str) -> None:
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        self._go_on()

    def _go_on(self) -> None:
        while self._running.total() < self._at_once and (tenant := self._next()) is not None:
            self._running[tenant] += 1

    def _next(self) -> str | None:
        """The tenant whose turn it is; it goes to the end of the line."""
        for tenant, line in list(self._waiting.items()):
            while line and line[0].done():
                line.popleft()  # left while it waited
            if not line:
                del self._waiting[tenant]
            elif self._running[tenant] < self._at_once_each:
                line.popleft().set_result(None)
                self._waiting.move_to_end(tenant)
                return tenant
        return None
