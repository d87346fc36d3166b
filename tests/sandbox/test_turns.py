"""Who decodes next."""

import asyncio

from headstart.sandbox.turns import Turns


class Line:
    """Jobs that last until they are let go; notes in which order they begin."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.began: list[str] = []
        self.ends: list[tuple[str, asyncio.Event]] = []

    async def job(self, tenant: str) -> None:
        async with self.turns.turn(tenant):
            end = asyncio.Event()
            self.began.append(tenant)
            self.ends.append((tenant, end))
            await end.wait()

    async def let_go(self, number: int) -> None:
        self.ends[number][1].set()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_one_tenant_never_has_all_of_them():
    async def run() -> list[str]:
        line = Line(Turns(at_once=3, at_once_each=2))
        tasks = [asyncio.ensure_future(line.job(name)) for name in "aaaa"]
        await settle()
        assert line.began == ["a", "a"]
        tasks.append(asyncio.ensure_future(line.job("b")))
        await settle()
        began = list(line.began)
        for task in tasks:
            task.cancel()
        return began

    assert asyncio.run(run()) == ["a", "a", "b"]


def test_tenants_take_turns_however_long_one_line_is():
    async def run() -> list[str]:
        line = Line(Turns(at_once=1, at_once_each=1))
        tasks = [asyncio.ensure_future(line.job(name)) for name in "aaaaabc"]
        await settle()
        for number in range(6):
            await line.let_go(number)
        for task in tasks:
            task.cancel()
        return line.began

    # Those who came later wait for one of a's, not for all.
    assert asyncio.run(run()) == ["a", "a", "b", "c", "a", "a", "a"]


def test_who_leaves_while_waiting_or_at_its_turn_keeps_nobody_out():
    async def run() -> list[str]:
        line = Line(Turns(at_once=1, at_once_each=1))
        first = asyncio.ensure_future(line.job("a"))
        await settle()
        waiting = asyncio.ensure_future(line.job("b"))
        at_its_turn = asyncio.ensure_future(line.job("c"))
        last = asyncio.ensure_future(line.job("d"))
        await settle()
        waiting.cancel()
        line.ends[0][1].set()
        # Its turn comes in the same moment as its end.
        await asyncio.sleep(0)
        at_its_turn.cancel()
        await settle()
        began = list(line.began)
        for task in (first, last):
            task.cancel()
        return began

    assert asyncio.run(run())[-1] == "d"
