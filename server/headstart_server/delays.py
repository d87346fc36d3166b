"""How long a caller waits who has just had much of what costs the server, and counts nowhere.

Requests without admission and refusals count against no quota. Each costs the server some tenths of
a millisecond of the one thread that hands on everybody's words. Without a wait, one client that
repeats them leaves little of it to the others. A client that waits has a connection that is not
read meanwhile.
"""

import asyncio
import time
from collections.abc import Callable

from headstart_server.quota import Bucket
from headstart_server.request_context import RequestContext
from headstart_server.routes import PROBES

DIRECT_AT_ONCE, DIRECT_A_SECOND = 200, 100
"""Answers of one caller without admission: lists, pages, metrics."""
REFUSED_AT_ONCE, REFUSED_A_SECOND = 100, 50
"""Refusals of one caller."""
REFUSED_BYTES = 16 << 10
"""A refusal counts once more for each so many bytes of its body: they were read, and perhaps
parsed."""
LONGEST_S, LONGEST_PROBE_S = 4.0, 0.5
"""A supervisor takes a probe that waits for longer as a sign to restart the server."""


class Delays:
    """Used from one event loop only."""

    def __init__(
        self,
        num_free: int,
        each_s: float,
        longest_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """So many at once wait for nothing, and one more after each such time.

        Nobody waits for longer than ``longest_s``, and none owes more than that.
        """
        self._num_free, self._each_s, self._longest_s = num_free, each_s, longest_s
        self._clock = clock
        self._of_caller: dict[str, Bucket] = {}
        """Of callers that are not forgotten yet; the one that was charged last is the last."""

    def __len__(self) -> int:
        return len(self._of_caller)

    def charge(self, caller: str, amount: int = 1) -> None:
        """The caller had one more, or one that counts as so many."""
        now_s = self._clock()
        self._forget(now_s)
        bucket = self._of_caller.pop(caller, None)
        if bucket is None:
            bucket = Bucket(60 / self._each_s, now_s, self._num_free)
        self._of_caller[caller] = bucket
        if (left_s := self._longest_s - bucket.wait_s(1, now_s)) > 0:
            bucket.take(min(amount, 1 + left_s / self._each_s), now_s)

    def wait_s(self, caller: str) -> float:
        bucket = self._of_caller.get(caller)
        return 0.0 if bucket is None else min(self._longest_s, bucket.wait_s(1, self._clock()))

    def _forget(self, now_s: float) -> None:
        """A full bucket is as good as none, so the table holds the newest offenders only."""
        while self._of_caller:
            oldest = next(iter(self._of_caller))
            if self._of_caller[oldest].wait_s(self._num_free, now_s):
                return
            del self._of_caller[oldest]


class RequestDelays:
    """Of each tenant and operator, and of each address without a key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._direct = Delays(DIRECT_AT_ONCE, 1 / DIRECT_A_SECOND, LONGEST_S, clock)
        self._probed = Delays(DIRECT_AT_ONCE, 1 / DIRECT_A_SECOND, LONGEST_PROBE_S, clock)
        self._refused = Delays(REFUSED_AT_ONCE, 1 / REFUSED_A_SECOND, LONGEST_S, clock)

    async def answer(self, context: RequestContext) -> None:
        """Wait before an answer without admission; a probe waits for other probes only."""
        is_probe = context.scope["path"] in PROBES
        await self._wait(self._probed if is_probe else self._direct, context, 1)

    async def refuse(self, context: RequestContext) -> None:
        await self._wait(self._refused, context, 1 + context.num_bytes // REFUSED_BYTES)

    async def _wait(self, delays: Delays, context: RequestContext, amount: int) -> None:
        address = (context.scope.get("client") or ("",))[0]
        name = f"name {context.caller}" if context.caller else f"address {address}"
        wait_s = delays.wait_s(name)
        delays.charge(name, amount)
        if wait_s > 0:
            context.details["delayed_s"] = round(wait_s, 1)
            await asyncio.sleep(wait_s)
