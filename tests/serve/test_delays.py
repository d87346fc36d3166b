"""What counts as no request waits for its turn, by a clock of the test's own."""

import asyncio

import pytest

from headstart_server import delays
from headstart_server.delays import (
    DIRECT_A_SECOND,
    DIRECT_AT_ONCE,
    LONGEST_PROBE_S,
    LONGEST_S,
    REFUSED_A_SECOND,
    REFUSED_AT_ONCE,
    REFUSED_BYTES,
    RequestDelays,
)
from headstart_server.request_context import RequestContext
from tests.serve.test_quota import Clock


@pytest.fixture
def waited(monkeypatch) -> list[float]:
    """How long each of those has slept that did."""
    slept: list[float] = []

    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)

    monkeypatch.setattr(delays.asyncio, "sleep", sleep)
    return slept


def of(caller: str = "", address: str = "10.0.0.1", path: str = "/") -> RequestContext:
    scope = {"type": "http", "headers": [], "client": (address, 1), "path": path}
    return RequestContext(scope, None, None, lambda: False, caller=caller)


KINDS = {
    "answer": (DIRECT_AT_ONCE, DIRECT_A_SECOND),
    "refuse": (REFUSED_AT_ONCE, REFUSED_A_SECOND),
}


@pytest.mark.parametrize("kind", KINDS)
def test_some_are_free_then_they_come_at_a_pace_and_nobody_else_waits(kind, waited):
    at_once, a_second = KINDS[kind]

    async def work() -> None:
        clock = Clock()
        wait = getattr(RequestDelays(clock), kind)
        for _ in range(at_once):
            await wait(of("north"))
        assert waited == []
        await wait(of("north"))
        assert waited.pop() == pytest.approx(1 / a_second)
        for other in (of("south"), of(), of("", "10.0.0.2")):
            await wait(other)
        assert waited == []
        for _ in range(10_000):
            await wait(of("north"))
        assert max(waited) <= LONGEST_S
        clock.now_s += LONGEST_S + 1
        waited.clear()
        await wait(of("north"))
        assert waited == []

    asyncio.run(work())


def test_a_probe_waits_for_no_page_of_its_address_and_never_for_long(waited):
    async def work() -> None:
        delays = RequestDelays(Clock())
        for _ in range(10 * DIRECT_AT_ONCE):
            await delays.answer(of())
        assert max(waited) == LONGEST_S
        waited.clear()
        await delays.answer(of(path="/ready"))
        assert waited == []
        for _ in range(10 * DIRECT_AT_ONCE):
            await delays.answer(of(path="/health"))
        assert max(waited) == LONGEST_PROBE_S

    asyncio.run(work())


def test_a_long_body_counts_as_several_refusals_and_no_more_than_the_longest_wait(waited):
    async def work() -> None:
        clock = Clock()
        delays = RequestDelays(clock)
        long = of("north")
        long.num_bytes = (REFUSED_AT_ONCE - 1) * REFUSED_BYTES
        await delays.refuse(long)
        assert waited == []
        await delays.refuse(of("north"))
        assert waited.pop() == pytest.approx(1 / REFUSED_A_SECOND)
        long.num_bytes = 1 << 30
        await delays.refuse(long)
        await delays.refuse(of("north"))
        assert waited[-1] == LONGEST_S
        clock.now_s += LONGEST_S + 2 / REFUSED_A_SECOND
        waited.clear()
        await delays.refuse(of("north"))
        assert waited == []

    asyncio.run(work())


def test_a_caller_without_a_key_is_its_address(waited):
    async def work() -> None:
        delays = RequestDelays(Clock())
        for _ in range(REFUSED_AT_ONCE):
            await delays.refuse(of("", "10.0.0.1"))
        context = of("", "10.0.0.1")
        await delays.refuse(context)
        assert context.details["delayed_s"] >= 0
        # A tenant may have any name, an address too.
        await delays.refuse(of("10.0.0.1"))
        assert len(waited) == 1

    asyncio.run(work())
