"""Rate limits: requests and tokens per minute, of each tenant and of all together.

Each limit is a token bucket, full at the start. A request is charged when it arrives, its tokens
when they have been computed: a bucket may go below zero, and then refuses until it has refilled.
"""

import math
import time
from collections.abc import Callable

from headstart_server import metrics
from headstart_server.limits import Limits
from headstart_server.refusal import RefusedError, too_much

MEMORY_CALLS_AT_ONCE, MEMORY_CALLS_A_SECOND = 40, 20
"""Of a tenant, over all routes of memory. Each takes some milliseconds of the engine's loop: 1,200
at once had everybody's answers wait for seconds. What is more waits for its turn."""


class Bucket:
    """A token bucket, full at the start."""

    def __init__(self, per_minute: float, now_s: float, size: float | None = None) -> None:
        """It holds one minute's worth, or ``size``."""
        self._per_s = per_minute / 60
        self._size = float(per_minute if size is None else size)
        self._level = self._size
        self._filled_s = now_s

    def wait_s(self, amount: float, now_s: float) -> float:
        """How long until it holds this amount; 0 if it does now."""
        self._fill(now_s)
        return max(0.0, (amount - self._level) / self._per_s)

    def take(self, amount: float, now_s: float) -> None:
        """Subtract an amount, even if the bucket holds less."""
        self._fill(now_s)
        self._level -= amount

    def _fill(self, now_s: float) -> None:
        self._level = min(self._size, self._level + (now_s - self._filled_s) * self._per_s)
        self._filled_s = now_s


class RateLimit:
    """The requests and tokens per minute of one tenant, or of all of them."""

    def __init__(self, requests_per_minute: int, tokens_per_minute: int, now_s: float) -> None:
        self.requests = Bucket(requests_per_minute, now_s)
        self.tokens = Bucket(tokens_per_minute, now_s)
        self.memory_calls = Bucket(60 * MEMORY_CALLS_A_SECOND, now_s, MEMORY_CALLS_AT_ONCE)

    def wait_s(self, now_s: float) -> float:
        return max(self.requests.wait_s(1, now_s), self.tokens.wait_s(1, now_s))


class Quota:
    """Used from one event loop only."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._all = RateLimit(limits.requests_per_minute, limits.tokens_per_minute, clock())
        self._of_tenant: dict[str, RateLimit] = {}

    def admit(self, tenant: str) -> None:
        """Charge one request, or raise a refusal that says when to ask again."""
        now_s, limit = self._clock(), self._limit(tenant)
        if (wait_s := limit.wait_s(now_s)) > 0:
            raise _refusal("your share of requests or tokens a minute is used up", wait_s)
        if (wait_s := self._all.wait_s(now_s)) > 0:
            raise _refusal("all requests or tokens a minute of this server are used up", wait_s)
        limit.requests.take(1, now_s)
        self._all.requests.take(1, now_s)

    def memory_wait_s(self, tenant: str) -> float:
        """Charge one call about what is remembered, and say how long it is to wait for its turn.

        As such a call counts as in flight, few of a tenant's wait at once.
        """
        now_s, calls = self._clock(), self._limit(tenant).memory_calls
        wait_s = calls.wait_s(1, now_s)
        calls.take(1, now_s)
        return wait_s

    def charge(self, tenant: str, num_tokens: int) -> None:
        metrics.count_tokens(tenant, num_tokens)
        self.charge_memory(tenant, num_tokens)

    def charge_memory(self, tenant: str, num_tokens: int) -> None:
        """Charge tokens that were remembered, not computed: no answer is counted."""
        now_s = self._clock()
        self._limit(tenant).tokens.take(num_tokens, now_s)
        self._all.tokens.take(num_tokens, now_s)

    def _limit(self, tenant: str) -> RateLimit:
        if tenant not in self._of_tenant:
            limits = self._limits
            self._of_tenant[tenant] = RateLimit(
                limits.tenant_requests_per_minute, limits.tenant_tokens_per_minute, self._clock()
            )
        return self._of_tenant[tenant]


def _refusal(reason: str, wait_s: float) -> RefusedError:
    metrics.TURNED_AWAY.labels("rate").inc()
    return too_much(reason, math.ceil(wait_s))
