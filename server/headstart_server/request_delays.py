"""How long requests wait that need no admission, and refusals: neither counts against a quota.

Each costs the server some tenths of a millisecond of the one thread that hands on everybody's
words. Without a wait, one client that repeats them leaves little of it to the others. A client that
waits has a connection that is not read meanwhile.
"""

import asyncio
import time
from collections.abc import Callable

from headstart_server.delays import Delays
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
        """Wait before a refusal."""
        await self._wait(self._refused, context, 1 + context.num_bytes // REFUSED_BYTES)

    async def _wait(self, delays: Delays, context: RequestContext, amount: int) -> None:
        address = (context.scope.get("client") or ("",))[0]
        name = f"name {context.caller}" if context.caller else f"address {address}"
        wait_s = delays.wait_s(name)
        delays.charge(name, amount)
        if wait_s > 0:
            context.details["delayed_s"] = round(wait_s, 1)
            await asyncio.sleep(wait_s)
