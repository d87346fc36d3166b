"""An event loop whose clock a test turns: what would take minutes is due at once, and nothing else.

A test lets everything run that is due, looks, and turns on. What threads do beside the loop takes
its own time: `rig.waiting` waits for that.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from rig.waiting import until


class TurnedLoop(asyncio.SelectorEventLoop):
    """Its clock goes on when a test turns it, besides by itself."""

    ahead_s = 0.0

    def time(self) -> float:
        """In seconds, as everything in the loop counts them."""
        return super().time() + self.ahead_s


def run_turned(work: Coroutine[Any, Any, None]) -> None:
    """Run a test in such a loop."""
    with asyncio.Runner(loop_factory=TurnedLoop) as runner:
        runner.run(work)


async def turn(seconds: float) -> None:
    """Let so much time go by in the loop, and all run that is due then."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TurnedLoop), "run the test with run_turned"
    await settle()  # so that what was begun just now waits by the clock before it is turned
    loop.ahead_s += seconds
    await settle()


async def turn_until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    """Turn so far again and again, while threads do their part, until it becomes so."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TurnedLoop), "run the test with run_turned"

    def look() -> bool:
        loop.ahead_s += seconds
        return is_so()

    await until(look, what)


async def settle() -> None:
    """Let all run that is due."""
    for _ in range(20):
        await asyncio.sleep(0)
