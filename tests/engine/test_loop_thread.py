"""Work in the engine's loop, as coroutines of other loops see it."""

import asyncio
import threading

import pytest

from headstart.engine.loop_thread import LoopThread


@pytest.fixture
def thread():
    thread = LoopThread()
    yield thread
    if not thread.is_closed:
        thread.close()


def test_what_work_returns_or_raises_comes_to_another_loop(thread):
    async def where(error=None):
        if error is not None:
            raise error
        return threading.get_ident()

    async def elsewhere():
        with pytest.raises(KeyError, match="no such"):
            await thread.run(where(KeyError("no such")))
        return await thread.run(where())

    assert asyncio.run(elsewhere()) != threading.get_ident()


@pytest.mark.parametrize("has_begun", [True, False])
def test_who_cancels_waits_until_the_work_has_cleaned_up(thread, has_begun):
    begun, cleaned = threading.Event(), []

    async def work():
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            for _ in range(20):  # cleaning up takes a while, too
                await asyncio.sleep(0)
            cleaned.append(True)

    async def elsewhere():
        task = asyncio.create_task(thread.run(work()))
        await asyncio.sleep(0)  # handed over
        if has_begun:
            await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        return list(cleaned)

    assert asyncio.run(elsewhere()) == ([True] if begun.is_set() else [])


def test_work_that_ends_with_its_loop_is_cancelled(thread):
    async def elsewhere():
        task = asyncio.create_task(thread.run(asyncio.Event().wait()))
        await thread.run(asyncio.sleep(0))  # so that it has begun
        await asyncio.to_thread(thread.close)
        await asyncio.wait((task,))
        return task.cancelled()

    assert asyncio.run(elsewhere())
