"""The heartbeat of an engine that responds, hangs, fails and recovers."""

import asyncio

from headstart.serve.heartbeat import Heartbeat


async def until_alive(heartbeat: Heartbeat) -> None:
    async with asyncio.timeout(60):
        while not heartbeat.is_alive:
            await asyncio.sleep(0.01)


def test_an_engine_is_alive_until_the_deadline_and_again_when_it_responds():
    async def run() -> None:
        responding = asyncio.Event()
        responding.set()
        heartbeat = Heartbeat(responding.wait, 0.4)
        beating = asyncio.create_task(heartbeat.run())
        await asyncio.sleep(0.8)
        await until_alive(heartbeat)
        responding.clear()
        await asyncio.sleep(0.8)
        assert not heartbeat.is_alive
        responding.set()
        await until_alive(heartbeat)
        beating.cancel()

    asyncio.run(run())


def test_a_failed_call_is_no_response_and_does_not_end_the_heartbeat():
    async def run() -> None:
        failing = True

        async def beat() -> None:
            if failing:
                raise RuntimeError("no engine")

        heartbeat = Heartbeat(beat, 0.2)
        beating = asyncio.create_task(heartbeat.run())
        await asyncio.sleep(0.5)
        assert not heartbeat.is_alive
        failing = False
        await until_alive(heartbeat)
        beating.cancel()

    asyncio.run(run())
