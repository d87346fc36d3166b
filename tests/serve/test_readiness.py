"""The heartbeat of an engine that responds, hangs, fails and recovers; the test turns its clock."""

import asyncio

from headstart_server.readiness import Heartbeat
from rig.waiting import until
from tests.serve.test_quota import Clock

DEADLINE_S = 0.04  # a call each 10 ms


class Engine:
    """Responds, or hangs, or fails."""

    def __init__(self) -> None:
        self.responds = asyncio.Event()
        self.responds.set()
        self.fails = False
        self.num_calls = 0

    async def beat(self) -> None:
        self.num_calls += 1
        if self.fails:
            raise RuntimeError("no engine")
        await self.responds.wait()

    async def called_again(self) -> None:
        before = self.num_calls
        await until(lambda: self.num_calls > before)


def test_an_engine_is_alive_until_the_deadline_and_again_when_it_responds():
    async def run() -> None:
        engine, clock = Engine(), Clock()
        heartbeat = Heartbeat(engine.beat, DEADLINE_S, clock)
        beating = asyncio.create_task(heartbeat.run())
        for _ in range(3):
            clock.now_s += 10 * DEADLINE_S
            await engine.called_again()
            await until(lambda: heartbeat.is_alive)
        engine.responds.clear()
        await engine.called_again()  # and this call hangs
        clock.now_s += 0.9 * DEADLINE_S
        assert heartbeat.is_alive
        clock.now_s += 0.2 * DEADLINE_S
        assert not heartbeat.is_alive
        engine.responds.set()
        await until(lambda: heartbeat.is_alive)
        beating.cancel()

    asyncio.run(run())


def test_a_failed_call_is_no_response_and_does_not_end_the_heartbeat():
    async def run() -> None:
        engine, clock = Engine(), Clock()
        engine.fails = True
        heartbeat = Heartbeat(engine.beat, DEADLINE_S, clock)
        beating = asyncio.create_task(heartbeat.run())
        await engine.called_again()
        clock.now_s += 2 * DEADLINE_S
        await engine.called_again()
        assert not heartbeat.is_alive
        engine.fails = False
        await until(lambda: heartbeat.is_alive)
        beating.cancel()

    asyncio.run(run())
