"""Processor time, dealt out to the cameras of all tenants: none takes more than its part for long.

What one tenant does not use, the others get; the same among the cameras of a tenant.
"""

import threading
import time
from collections.abc import Callable, Sequence
from weakref import WeakSet

MAX_SAVED_S = 2.0
"""Processor time that a camera may have saved up: what it may use at once."""

DEAL_S = 0.02
"""How often it is dealt out, at most."""


class Shares:
    """From any thread. A share that nobody holds any more counts no more."""

    def __init__(self, processors: float, clock: Callable[[], float] = time.monotonic) -> None:
        """``processors``: how many seconds of processor time a second are dealt out in all."""
        self._processors, self._clock = processors, clock
        self._lock = threading.Lock()
        self._shares: WeakSet[Share] = WeakSet()
        self._dealt_s = clock()

    def share(self, tenant: str = "") -> "Share":
        share = Share(self, tenant)
        with self._lock:
            self._shares.add(share)
        return share

    def spend(self, share: "Share", used_s: float) -> bool:
        with self._lock:
            self._deal()
            share.saved_s -= used_s
            return share.saved_s > 0

    def _deal(self) -> None:
        now_s = self._clock()
        if now_s - self._dealt_s < DEAL_S:
            return
        amount_s, self._dealt_s = (now_s - self._dealt_s) * self._processors, now_s
        tenants: dict[str, list[Share]] = {}
        for share in self._shares:
            tenants.setdefault(share.tenant, []).append(share)
        wanted_s = [[MAX_SAVED_S - share.saved_s for share in of] for of in tenants.values()]
        for of, each, part_s in zip(
            tenants.values(),
            wanted_s,
            dealt(amount_s, [sum(each) for each in wanted_s]),
            strict=True,
        ):
            for share, more_s in zip(of, dealt(part_s, each), strict=True):
                share.saved_s += more_s


class Share:
    """One camera's. What it has used it tells, and is told whether it may go on."""

    def __init__(self, shares: Shares, tenant: str) -> None:
        self._shares, self.tenant = shares, tenant
        self.saved_s = MAX_SAVED_S
        """Less than nothing where it has used more than its part."""

    def spend(self, used_s: float) -> bool:
        """Take off what was used since the last call; whether any is left."""
        return self._shares.spend(self, used_s)


def dealt(amount: float, wanted: Sequence[float]) -> list[float]:
    """Equal parts of an amount, but to nobody more than is wanted: the rest is the others'."""
    parts = [0.0] * len(wanted)
    by_want = sorted(range(len(wanted)), key=wanted.__getitem__)
    for num_served, place in enumerate(by_want):
        parts[place] = min(wanted[place], amount / (len(wanted) - num_served))
        amount -= parts[place]
    return parts
