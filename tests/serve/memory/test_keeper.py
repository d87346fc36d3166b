"""The keeper: what it loads, saves and forgets. The store is real, the engine's end called here."""

import asyncio
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.serve.memory.keeper import MAX_LOADING, STORE_THREADS, MemoryKeeper
from headstart.serve.memory.keeping import MemoryKeeping
from headstart.serve.memory.seal import Seal, SealError
from headstart.serve.memory.store import FileStore, StoreError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.remembered import Remembered
from headstart.speculation.stream_snapshot import StreamSnapshot
from tests.serve.memory.memories import FRONT, KEY, QUESTION, cascade, snapshot

SEAL = Seal([KEY], "tokenizer")
BACK = StreamKey("north", "back")


class CalledHere:
    """`EngineMemory` without a process between: the same calls on a scheduler's `Remembered`."""

    def __init__(self):
        self.cascade = cascade()
        self.remembered = Remembered(self.cascade)
        self.num_at_once, self.order = {}, []
        self._num_waiting, self._turn = Counter(), asyncio.Lock()

    async def streams(self, tenant, after, max_streams):
        return self.remembered.streams(tenant, after, max_streams)

    async def export(self, stream):
        plain = self.remembered.export(stream.tenant, stream.stream)
        return None if plain is None else StreamSnapshot.parse(plain)

    async def take(self, stream, given):
        names, waiting = (stream.tenant, stream.stream), self._num_waiting
        waiting[stream.tenant] += 1
        most = max(self.num_at_once.get(stream.tenant, 0), waiting[stream.tenant])
        self.num_at_once[stream.tenant] = most
        async with self._turn:
            num_tokens, num_left = self.remembered.take(*names, given.plain())
            while num_left:
                await asyncio.sleep(0)  # a step of the engine
                num_left = self.remembered.take_on(*names)
        waiting[stream.tenant] -= 1
        self.order.append(stream.tenant)
        return num_tokens

    def rows(self, tenant):
        return self.remembered.streams(tenant, None, 1000)

    async def forget(self, stream):
        self.remembered.forget(stream.tenant, stream.stream)

    async def forget_tenant(self, tenant):
        self.remembered.forget_tenant(tenant)

    async def forget_before(self, time_s):
        self.remembered.forget_before(time_s)


class Broken:
    def __getattr__(self, name):
        def fail(*arguments):
            raise OSError("away")

        return fail


class Server:
    """A keeper and what it keeps, of one server of several on one store."""

    def __init__(self, store, *, max_tenant_bytes=1 << 20, **keeping):
        self.engine, self.notes = CalledHere(), []
        keeping = MemoryKeeping(keys=(KEY,), store="somewhere", **keeping)
        self.keeper = MemoryKeeper(
            self.engine,
            keeping,
            SEAL,
            store,
            max_tenant_bytes,
            lambda **note: self.notes.append(note),
        )

    def ask(self, stream, answer, **more):
        """Ask on a stream; what was drafted for it."""
        question = Question(QUESTION, stream=stream, tenant=stream.tenant, **more)
        record = RequestRecord("id", 0.0, 0.0, token_ids=list(answer), finish_reason="stop")
        self.keeper.asked(question)
        self.engine.cascade.begin(DraftRequest("id", stream, QUESTION))
        drafted = self.engine.cascade.propose("id", (), 16).tokens
        self.engine.cascade.finish("id", answer)
        self.keeper.answered(question, record)
        return drafted

    def drafted(self, stream):
        self.engine.cascade.begin(DraftRequest("look", stream, QUESTION))
        drafted = self.engine.cascade.propose("look", (), 16).tokens
        self.engine.cascade.finish("look", ())
        return drafted


async def listed(server, after=None, max_streams=100):
    rows, _ = await server.keeper.streams("north", after, max_streams)
    return [row["stream"] for row in rows]


async def soon(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def run(check):
    asyncio.run(asyncio.wait_for(check(), 60))


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "memories", 3600.0)


def test_a_server_that_drains_hands_its_streams_to_the_next(store):
    async def check():
        first, second = Server(store), Server(store)
        first.ask(FRONT, [1, 2, 3])
        first.ask(BACK, [4, 5])
        await first.keeper.save()
        assert second.ask(FRONT, [1, 2, 3, 9]) == ()  # its question did not wait
        await soon(lambda: second.engine.rows("north")[0]["answers"] == 2)
        assert second.drafted(FRONT)[:4] == (1, 2, 3, 9)
        assert second.drafted(StreamKey("south", FRONT.stream)) == ()

    run(check)


def test_streams_are_saved_now_and_then_and_no_more_than_a_tenant_may_store(store):
    async def check():
        server = Server(store, save_every_s=0.05, max_tenant_bytes=3000)
        for number in range(20):
            server.ask(StreamKey("north", f"camera {number}"), [number] * 50)
            await asyncio.sleep(0.02)
        await soon(lambda: store.get(StreamKey("north", "camera 19")) is not None)
        await soon(lambda: sum(each.num_bytes for each in store.streams("north")) <= 3000)
        assert store.streams("north")
        assert store.get(StreamKey("north", "camera 0")) is None

    run(check)


def test_a_stream_that_asks_privately_is_not_stored(store):
    async def check():
        server = Server(store)
        server.ask(FRONT, [1, 2, 3], is_private=True)
        server.ask(FRONT, [4, 5])
        server.ask(BACK, [6])
        await server.keeper.save()
        assert [each.name for each in store.streams("north")] == ["back"]

    run(check)


def test_a_forgotten_stream_is_gone_here_and_in_the_store(store):
    async def check():
        server = Server(store)
        server.ask(FRONT, [1, 2, 3])
        server.ask(BACK, [4, 5])
        await server.keeper.save()
        server.ask(FRONT, [1, 2, 3])
        await server.keeper.forget(FRONT)
        await server.keeper.save()
        assert await listed(server) == ["back"]
        assert await server.keeper.export(FRONT) is None
        await server.keeper.forget_tenant("north")
        await server.keeper.save()
        assert await listed(server) == []
        assert store.streams("north") == []

    run(check)


def test_what_is_older_than_memories_are_kept_is_forgotten(store):
    async def check():
        server = Server(store, keep_days=1.0)
        old = replace(snapshot([1, 2, 3]), said_at_s=(time.time() - 2 * 86_400,))
        server.engine.remembered.take("north", "old", old.plain())
        server.ask(FRONT, [4, 5])
        await soon(lambda: len(server.engine.rows("north")) == 1)
        assert server.engine.rows("north")[0]["stream"] == FRONT.stream

    run(check)


def test_a_stream_is_seeded_from_another_of_its_tenant(store):
    async def check():
        server = Server(store)
        server.ask(FRONT, [1, 2, 3])
        sealed = await server.keeper.export(FRONT)
        opened, num_tokens = await server.keeper.take(BACK, sealed)
        assert num_tokens == 4
        assert (opened.stream, opened.snapshot.num_answers) == (FRONT, 1)
        assert server.drafted(BACK)[:3] == (1, 2, 3)
        with pytest.raises(SealError):
            await server.keeper.take(StreamKey("south", "back"), sealed)
        assert server.drafted(StreamKey("south", "back")) == ()

    run(check)


def test_streams_are_listed_page_by_page_wherever_they_are(store):
    async def check():
        before, server = Server(store), Server(store)
        for number in range(0, 9, 2):
            before.ask(StreamKey("north", f"camera {number}"), [1, 2])
        await before.keeper.save()
        for number in (1, 3, 4, 5):
            server.ask(StreamKey("north", f"camera {number}"), [3])
        after, pages = None, []
        while not pages or after is not None:
            rows, after = await server.keeper.streams("north", after, 3)
            pages.append([(row["stream"][-1], row["stored_bytes"] > 0) for row in rows])
        here = [("1", False), ("3", False), ("5", False)]
        there = [(number, True) for number in "02468"]
        assert [len(page) for page in pages] == [3, 3, 2]
        assert [row for page in pages for row in page] == sorted(here + there)

    run(check)


def test_a_tenant_that_brings_many_memories_has_one_turn(store):
    async def check():
        server = Server(store)
        said = np.arange(1 << 15, dtype=np.int32)
        said[::1024] = -7
        given = StreamSnapshot(said, (1024,) * 32, (time.time(),) * 32)

        def bring(tenant, number):
            sealed = SEAL.seal(StreamKey(tenant, "elsewhere"), given)
            return server.keeper.take(StreamKey(tenant, f"camera {number}"), sealed)

        await asyncio.gather(*(bring("north", number) for number in range(5)), bring("south", 0))
        assert server.engine.num_at_once == {"north": 1, "south": 1}
        assert len(server.engine.rows("north")) == 5
        assert server.engine.order.index("south") < 2  # it does not wait for all of the other's

    run(check)


def test_a_store_full_of_others_bytes_is_not_believed(store):
    async def check():
        forged = Seal([b"somebody else's key"], "tokenizer")
        store.put(FRONT, forged.seal(FRONT, snapshot([7, 7, 7])))
        moved = SEAL.seal(BACK, snapshot([8, 8, 8]))
        store.put(StreamKey("north", "side"), moved)
        server = Server(store)
        assert server.ask(FRONT, [1, 2]) == ()
        assert server.ask(StreamKey("north", "side"), [1, 2])[:3] != (8, 8, 8)
        await soon(lambda: server.notes)
        await asyncio.sleep(0.1)
        answers = [row["answers"] for row in server.engine.rows("north")]
        assert answers == [1, 1]

    run(check)


def test_a_store_that_is_away_costs_nothing_but_is_told():
    async def check():
        server = Server(Broken())
        server.ask(FRONT, [1, 2, 3])
        await server.keeper.save()
        await server.keeper.save()
        assert server.drafted(FRONT)[:3] == (1, 2, 3)
        assert len(server.notes) == 1
        with pytest.raises(StoreError):
            await server.keeper.forget(FRONT)
        assert server.drafted(FRONT) == ()  # the engine has forgotten it all the same

    run(check)


def test_what_could_not_be_saved_is_saved_later(store):
    async def check():
        server = Server(Broken())
        server.ask(FRONT, [1, 2, 3])
        server.ask(BACK, [4])
        await server.keeper.save()
        server.keeper._store = store
        await server.keeper.save()
        assert {each.name for each in store.streams("north")} == {FRONT.stream, BACK.stream}

    run(check)


def test_a_slow_store_holds_up_few_streams_and_no_other_threads(store):
    class Slow:
        num_asked = 0

        def get(self, stream):
            self.num_asked += 1
            time.sleep(0.02)

        def __getattr__(self, name):
            return getattr(store, name)

    async def check():
        slow = Slow()
        server = Server(slow)
        for number in range(3 * MAX_LOADING):
            server.ask(StreamKey("north", f"stream {number}"), [1, 2])
        began_s = time.monotonic()
        await asyncio.to_thread(lambda: None)
        assert time.monotonic() - began_s < 0.02 * MAX_LOADING / STORE_THREADS / 2
        await soon(lambda: slow.num_asked >= MAX_LOADING)
        await asyncio.sleep(0.1)
        assert slow.num_asked == MAX_LOADING
        server.ask(StreamKey("north", f"stream {3 * MAX_LOADING - 1}"), [1, 2])
        await soon(lambda: slow.num_asked > MAX_LOADING)

    run(check)
