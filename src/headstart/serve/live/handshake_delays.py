"""How long the next handshake of a tenant waits whose sockets were refused one after another.

A socket that is refused has cost the server a handshake, and often a camera that had just begun,
and counts as no request: without a wait a client could repeat it as fast as it connects.
"""

import time
from collections.abc import Callable

from headstart.serve.quota import Bucket

NUM_FREE = 10
"""Refused sockets at once after which nobody waits yet."""
EACH_S = 2.0
"""One more is free after each such time."""
LONGEST_S = 4.0
"""No handshake waits longer, and no tenant owes more than that."""


class HandshakeDelays:
    """Used from one event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of_tenant: dict[str, Bucket] = {}
        """Of tenants with refused sockets that are not forgotten yet."""

    def __len__(self) -> int:
        return len(self._of_tenant)

    def charge(self, tenant: str) -> None:
        """A socket of the tenant was refused."""
        now_s = self._clock()
        self._forget(now_s)
        if tenant not in self._of_tenant:
            self._of_tenant[tenant] = Bucket(60 / EACH_S, now_s, NUM_FREE)
        bucket = self._of_tenant[tenant]
        if bucket.wait_s(1, now_s) < LONGEST_S:
            bucket.take(1, now_s)

    def wait_s(self, tenant: str) -> float:
        """How long the tenant's next handshake is to wait."""
        bucket = self._of_tenant.get(tenant)
        return 0.0 if bucket is None else min(LONGEST_S, bucket.wait_s(1, self._clock()))

    def _forget(self, now_s: float) -> None:
        """A full bucket is as good as none, so the table holds the newest offenders only."""
        for tenant, bucket in list(self._of_tenant.items()):
            if not bucket.wait_s(NUM_FREE, now_s):
                del self._of_tenant[tenant]
