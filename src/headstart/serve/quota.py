"""How many requests and tokens a minute: of each tenant, and of all together.

A bucket a share, full at the start and filled evenly. A request is paid for when it comes, its
tokens when they are known: a bucket may go below zero, and then refuses until it is filled again.
"""

import math
import time
from collections.abc import Callable

from headstart.serve import figures
from headstart.serve.refusal import RefusedError, too_much
from headstart.serve.settings import Limits


class Bucket:
    """So many a minute, a minute's worth at once at most."""

    def __init__(self, per_minute: int, now_s: float) -> None:
        self._per_s = per_minute / 60
        self._size = float(per_minute)
        self._level = self._size
        self._filled_s = now_s

    def wait_s(self, amount: float, now_s: float) -> float:
        """How long until it holds as much; 0 if it does."""
        self._fill(now_s)
        return max(0.0, (amount - self._level) / self._per_s)

    def take(self, amount: float, now_s: float) -> None:
        """Whether it holds as much or not."""
        self._fill(now_s)
        self._level -= amount

    def _fill(self, now_s: float) -> None:
        self._level = min(self._size, self._level + (now_s - self._filled_s) * self._per_s)
        self._filled_s = now_s


class Share:
    """What one tenant, or all of them, may have: requests and tokens."""

    def __init__(self, requests_per_minute: int, tokens_per_minute: int, now_s: float) -> None:
        self.requests = Bucket(requests_per_minute, now_s)
        self.tokens = Bucket(tokens_per_minute, now_s)

    def wait_s(self, now_s: float) -> float:
        """How long until one more request may come."""
        return max(self.requests.wait_s(1, now_s), self.tokens.wait_s(1, now_s))


class Quota:
    """Used from one event loop only."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._all = Share(limits.requests_per_minute, limits.tokens_per_minute, clock())
        self._of_tenant: dict[str, Share] = {}

    def admit(self, tenant: str) -> None:
        """Take one request, or raise a refusal that says when to come back."""
        now_s, share = self._clock(), self._share(tenant)
        if (wait_s := share.wait_s(now_s)) > 0:
            raise _refusal("your share of requests or tokens a minute is used up", wait_s)
        if (wait_s := self._all.wait_s(now_s)) > 0:
            raise _refusal("all requests or tokens a minute of this server are used up", wait_s)
        share.requests.take(1, now_s)
        self._all.requests.take(1, now_s)

    def charge(self, tenant: str, num_tokens: int) -> None:
        """Take the tokens of a prompt and its answers, computed for this tenant."""
        figures.count_tokens(tenant, num_tokens)
        now_s = self._clock()
        self._share(tenant).tokens.take(num_tokens, now_s)
        self._all.tokens.take(num_tokens, now_s)

    def _share(self, tenant: str) -> Share:
        if tenant not in self._of_tenant:
            limits = self._limits
            self._of_tenant[tenant] = Share(
                limits.tenant_requests_per_minute, limits.tenant_tokens_per_minute, self._clock()
            )
        return self._of_tenant[tenant]


def _refusal(reason: str, wait_s: float) -> RefusedError:
    figures.TURNED_AWAY.labels("rate").inc()
    return too_much(reason, math.ceil(wait_s))
