"""A queue that gives tenants their turns round-robin."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairQueue:
    """Bounds how many jobs run, of all tenants and of each. Used from one event loop only."""

    def __init__(self, max_running: int, max_running_of_tenant: int) -> None:
        self._max_running = max_running
        self._max_running_of_tenant = max_running_of_tenant
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a turn of this tenant's and hold it until the block is left."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(mine)
        self._start_next()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._release(tenant)  # the turn was given and the caller cancelled at once
            else:
                mine.cancel()
            raise
        try:
            yield
        finally:
            self._release(tenant)

    def _release(self, tenant: str) -> None:
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        self._start_next()

    def _start_next(self) -> None:
        while self._running.total() < self._max_running and (tenant := self._next()) is not None:
            self._running[tenant] += 1

    def _next(self) -> str | None:
        """Give the next tenant its turn and move it to the end of the queue."""
        for tenant, waiting in list(self._waiting.items()):
            while waiting and waiting[0].done():
                waiting.popleft()  # cancelled while it waited
            if not waiting:
                del self._waiting[tenant]
            elif self._running[tenant] < self._max_running_of_tenant:
                waiting.popleft().set_result(None)
                self._waiting.move_to_end(tenant)
                return tenant
        return None
