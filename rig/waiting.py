"""The one place where a test waits: for something to become so, never for time to pass.

Whoever waits says what for, and a machine that is busy costs patience, no failure. What a test
shows about time it shows by a clock that it turns. `tests/test_clocks.py` holds the tests to it.
"""

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""Longer than anything takes on a machine that is busy."""
LOOK_S = 0.01


def wait_until(
    is_so: Callable[[], object],
    what: str = "it",
    seconds: float = PATIENCE_S,
    look_s: float = LOOK_S,
) -> None:
    """Look again and again; an assertion fails where it does not become so."""
    deadline_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline_s, f"{what} did not come within {seconds:g} s"
        time.sleep(look_s)


async def until(is_so: Callable[[], object], what: str = "it", seconds: float = PATIENCE_S) -> None:
    """`wait_until`, while the event loop goes on."""
    deadline_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline_s, f"{what} did not come within {seconds:g} s"
        await asyncio.sleep(LOOK_S)
