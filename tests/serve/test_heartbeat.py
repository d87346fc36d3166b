"""Signs of life, and what is made of their absence."""

import asyncio

from headstart.serve.heartbeat import Heartbeat


def test_it_is_heard_until_the_deadline_and_again_when_it_comes_back():
    async def run() -> None:
        lively = asyncio.Event()
        lively.set()
        heartbeat = Heartbeat(lively.wait, 0.4)
        listening = asyncio.create_task(heartbeat.listen())
        await asyncio.sleep(0.8)
        assert heartbeat.is_heard
        lively.clear()
        await asyncio.sleep(0.8)
        assert not heartbeat.is_heard
        lively.set()
        await asyncio.sleep(0.2)
        assert heartbeat.is_heard
        listening.cancel()

    asyncio.run(run())


def test_a_failure_is_no_sign_of_life_and_no_end_of_listening():
    async def run() -> None:
        failing = True

        async def beat() -> None:
            if failing:
                raise RuntimeError("no engine")

        heartbeat = Heartbeat(beat, 0.2)
        listening = asyncio.create_task(heartbeat.listen())
        await asyncio.sleep(0.5)
        assert not heartbeat.is_heard
        failing = False
        await asyncio.sleep(0.2)
        assert heartbeat.is_heard
        listening.cancel()

    asyncio.run(run())
