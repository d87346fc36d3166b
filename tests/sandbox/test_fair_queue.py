"""The order in which tenants get their turns."""

import asyncio

from headstart_server.sandbox.pool import FairQueue


class Jobs:
    """Jobs that run until they are released; notes the order in which they begin."""

    def __init__(self, queue: FairQueue) -> None:
        self.queue = queue
        self.began: list[str] = []
        self.ends: list[tuple[str, asyncio.Event]] = []

    async def job(self, tenant: str) -> None:
        async with self.queue.turn(tenant):
            end = asyncio.Event()
            self.began.append(tenant)
            self.ends.append((tenant, end))
            await end.wait()

    async def release(self, number: int) -> None:
        self.ends[number][1].set()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_one_tenant_never_has_all_turns():
    async def run() -> list[str]:
        jobs = Jobs(FairQueue(max_running=3, max_running_of_tenant=2))
        tasks = [asyncio.ensure_future(jobs.job(name)) for name in "aaaa"]
        await settle()
        assert jobs.began == ["a", "a"]
        tasks.append(asyncio.ensure_future(jobs.job("b")))
        await settle()
        began = list(jobs.began)
        for task in tasks:
            task.cancel()
        return began

    assert asyncio.run(run()) == ["a", "a", "b"]


def test_tenants_take_turns_however_many_jobs_one_has():
    async def run() -> list[str]:
        jobs = Jobs(FairQueue(max_running=1, max_running_of_tenant=1))
        tasks = [asyncio.ensure_future(jobs.job(name)) for name in "aaaaabc"]
        await settle()
        for number in range(6):
            await jobs.release(number)
        for task in tasks:
            task.cancel()
        return jobs.began

    # b and c, which came later, wait for two of a's jobs and not for all five.
    assert asyncio.run(run()) == ["a", "a", "b", "c", "a", "a", "a"]


def test_a_job_cancelled_while_waiting_or_at_its_turn_blocks_no_other():
    async def run() -> list[str]:
        jobs = Jobs(FairQueue(max_running=1, max_running_of_tenant=1))
        first = asyncio.ensure_future(jobs.job("a"))
        await settle()
        waiting = asyncio.ensure_future(jobs.job("b"))
        at_its_turn = asyncio.ensure_future(jobs.job("c"))
        last = asyncio.ensure_future(jobs.job("d"))
        await settle()
        waiting.cancel()
        jobs.ends[0][1].set()
        # It gets its turn and is cancelled in the same step of the event loop.
        await asyncio.sleep(0)
        at_its_turn.cancel()
        await settle()
        began = list(jobs.began)
        for task in (first, last):
            task.cancel()
        return began

    assert asyncio.run(run())[-1] == "d"
