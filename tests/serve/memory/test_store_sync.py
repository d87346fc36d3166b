"""What a server loads, saves and forgets. The store is real, the engine's end called here."""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from headstart.drafters.remembered import Remembered
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_server.memory.seal import SealError, SnapshotSeal
from headstart_server.memory.store import FileStore, MemorySettings, StoredStream, StoreError
from headstart_server.memory.store_sync import (
    MAX_LOADING,
    MAX_TENANT_LOADING,
    STORE_THREADS,
    MemoryStoreSync,
)
from headstart_server.memory.tenant_streams import MAX_STREAMS, Stored
from rig.waiting import until
from tests.serve.memory.memories import FRONT, KEY, QUESTION, cascade, snapshot
from tests.turned_loop import run_turned, turn, turn_until

SEAL = SnapshotSeal([KEY], "tokenizer")
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

    async def take(self, stream, given, is_wanted=lambda: True):
        names, waiting = (stream.tenant, stream.stream), self._num_waiting
        waiting[stream.tenant] += 1
        most = max(self.num_at_once.get(stream.tenant, 0), waiting[stream.tenant])
        self.num_at_once[stream.tenant] = most
        async with self._turn:
            if not is_wanted():
                return 0
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


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


class Broken:
    def __getattr__(self, name):
        def fail(*arguments):
            raise OSError("away")

        return fail


class Server:
    """What one server of several on one store remembers."""

    def __init__(self, store, *, max_tenant_bytes=1 << 20, **given):
        self.engine, self.notes = CalledHere(), []
        settings = MemorySettings(keys=(KEY,), store="somewhere", **given)
        self.sync = MemoryStoreSync(
            self.engine,
            settings,
            SEAL,
            store,
            max_tenant_bytes,
            lambda **note: self.notes.append(note),
        )

    def ask(self, stream, answer, **more):
        """Ask on a stream; what was drafted for it."""
        question = Question(QUESTION, stream=stream, tenant=stream.tenant, **more)
        record = RequestRecord("id", 0.0, 0.0, token_ids=list(answer), finish_reason="stop")
        self.sync.asked(question)
        request = self.engine.cascade.begin(DraftRequest("id", stream, QUESTION))
        drafted = self.engine.cascade.propose(request, (), 16).tokens
        self.engine.cascade.finish(request, answer)
        self.sync.answered(question, record)
        return drafted

    @property
    def is_at_rest(self):
        """Whether no stream waits for the store any more."""
        return not self.sync._loading.total()

    def drafted(self, stream):
        request = self.engine.cascade.begin(DraftRequest("look", stream, QUESTION))
        drafted = self.engine.cascade.propose(request, (), 16).tokens
        self.engine.cascade.finish(request, ())
        return drafted


def num_bytes(store):
    return sum(each.num_bytes for each in store.streams("north"))


async def listed(server, after=None, max_streams=100):
    rows, _ = await server.sync.streams("north", after, max_streams)
    return [row["stream"] for row in rows]


def run(check):
    run_turned(check())


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "memories", 3600.0)


def test_a_server_that_drains_hands_its_streams_to_the_next(store):
    async def check():
        first, second = Server(store), Server(store)
        first.ask(FRONT, [1, 2, 3])
        first.ask(BACK, [4, 5])
        await first.sync.save()
        assert second.ask(FRONT, [1, 2, 3, 9]) == ()  # its question did not wait
        await until(lambda: second.engine.rows("north")[0]["answers"] == 2)
        assert second.drafted(FRONT)[:4] == (1, 2, 3, 9)
        assert second.drafted(StreamKey("south", FRONT.stream)) == ()

    run(check)


def test_streams_are_saved_now_and_then_and_no_more_than_a_tenant_may_store(store):
    async def check():
        server = Server(store, save_every_s=10.0, max_tenant_bytes=3000)
        for number in range(20):
            server.ask(StreamKey("north", f"camera {number:02}"), [number] * 50)
        await turn(9.0)
        assert store.streams("north") == []
        await turn(2.0)
        newest = StreamKey("north", "camera 19")
        await until(lambda: store.get(newest) is not None and num_bytes(store) <= 3000)
        kept = store.streams("north")
        newest = [f"camera {number:02}" for number in range(20)][-len(kept) :]
        assert [each.name for each in kept] == newest

    run(check)


def test_a_tenant_stores_so_many_streams_and_a_save_does_not_list_them(store, monkeypatch):
    monkeypatch.setattr("headstart_server.memory.tenant_streams.MAX_STREAMS", 5)

    class Counted:
        num_listed = 0

        def streams(self, tenant):
            self.num_listed += 1
            return store.streams(tenant)

        def __getattr__(self, name):
            return getattr(store, name)

    async def check():
        counted = Counted()
        server = Server(counted, save_every_s=10.0)
        store.put(StreamKey("north", "of another server"), b"sealed")
        names = ["of another server"]
        for number in range(8):
            server.ask(StreamKey("north", f"camera {number}"), [number])
            names = [*names, f"camera {number}"][-5:]
            await turn_until(
                lambda names=names: [each.name for each in store.streams("north")] == names,
                "a save",
                seconds=2.0,
            )
        assert counted.num_listed == 1
        assert await listed(server) == [f"camera {number}" for number in range(8)]

    run(check)


def test_what_is_saved_while_the_store_is_listed_is_in_the_listing():
    async def check():
        begun, go_on, clock = asyncio.Event(), asyncio.Event(), Clock()

        async def list_streams(tenant):
            begun.set()
            await go_on.wait()
            return [StoredStream(name, 10, 0.0) for name in ("a", "b")]

        stored = Stored(list_streams, 1 << 20, clock)
        listing = asyncio.ensure_future(stored.of("north", 10.0))
        await begun.wait()
        stored.saved(StreamKey("north", "c"), 20)
        stored.forgot(StreamKey("north", "a"))
        go_on.set()
        assert list(await listing) == list(await stored.of("north", 10.0)) == ["b", "c"]
        clock.now_s += 11.0
        assert list(await stored.of("north", 10.0)) == ["a", "b"]  # what the store says now

    run(check)


def test_a_stream_that_asks_privately_is_not_stored(store):
    async def check():
        server = Server(store)
        server.ask(FRONT, [1, 2, 3], is_private=True)
        server.ask(FRONT, [4, 5])
        server.ask(BACK, [6])
        await server.sync.save()
        assert [each.name for each in store.streams("north")] == ["back"]

    run(check)


def test_streams_that_asked_privately_are_never_stored_however_many_there_are(store):
    async def check():
        server = Server(store)
        server.ask(StreamKey("north", "before"), [1])
        await server.sync.save()
        for number in range(MAX_STREAMS + 1):
            stream = StreamKey("north", f"private {number}")
            server.sync.asked(Question(QUESTION, stream=stream, tenant="north", is_private=True))
        for number in (0, 1, MAX_STREAMS):
            server.ask(StreamKey("north", f"private {number}"), [4, 5])
        server.ask(StreamKey("south", "camera"), [6])
        await server.sync.save()
        assert [each.name for each in store.streams("north")] == ["before"]
        assert [each.name for each in store.streams("south")] == ["camera"]

    run(check)


def test_a_tenant_with_many_streams_has_no_other_forgotten_or_asked_for_again(store):
    asked = Counter()

    class Counted:
        def get(self, stream):
            asked[stream] += 1

        def __getattr__(self, name):
            return getattr(store, name)

    async def check():
        server, quiet = Server(Counted()), StreamKey("south", "camera")
        server.ask(quiet, [1], is_private=True)
        for number in range(MAX_STREAMS + 10):
            stream = StreamKey("north", f"camera {number}")
            server.sync.asked(Question(QUESTION, stream=stream, tenant="north", is_private=True))
            if number % MAX_TENANT_LOADING == 0:
                await until(lambda: server.is_at_rest)
        server.ask(quiet, [2])
        await until(lambda: server.is_at_rest)
        await server.sync.save()
        assert asked[quiet] == 1
        assert store.streams("south") == []

    run(check)


def test_a_forgotten_stream_is_gone_here_and_in_the_store(store):
    async def check():
        server = Server(store)
        server.ask(FRONT, [1, 2, 3])
        server.ask(BACK, [4, 5])
        await server.sync.save()
        server.ask(FRONT, [1, 2, 3])
        await server.sync.forget(FRONT)
        await server.sync.save()
        assert await listed(server) == ["back"]
        assert await server.sync.export(FRONT) is None
        await server.sync.forget_tenant("north")
        await server.sync.save()
        assert await listed(server) == []
        assert store.streams("north") == []

    run(check)


@pytest.mark.parametrize("everything", [False, True])
def test_what_is_forgotten_while_it_is_read_from_the_store_does_not_come_back(store, everything):
    class Slow:
        def __init__(self):
            self.reads, self.go_on = threading.Event(), threading.Event()

        def get(self, stream):
            found = store.get(stream)
            self.reads.set()
            assert self.go_on.wait(60)
            return found

        def __getattr__(self, name):
            return getattr(store, name)

    async def check():
        slow, seen = Slow(), StreamKey("north", "front door")
        store.put(seen, SEAL.seal(seen, snapshot([1, 2, 3])))
        server = Server(slow)
        server.ask(seen, [4])
        await until(slow.reads.is_set)
        await (server.sync.forget_tenant("north") if everything else server.sync.forget(seen))
        slow.go_on.set()
        await until(lambda: server.is_at_rest)
        assert server.engine.rows("north") == []
        assert server.drafted(seen) == ()

    run(check)


def test_what_is_older_than_memories_are_kept_is_forgotten(store):
    async def check():
        server = Server(store, keep_days=1.0)
        old = replace(snapshot([1, 2, 3]), said_at_s=(86_400.0,))
        server.engine.remembered.take("north", "old", old.plain())
        server.ask(FRONT, [4, 5])
        await until(lambda: len(server.engine.rows("north")) == 1)
        assert server.engine.rows("north")[0]["stream"] == FRONT.stream

    run(check)


def test_a_stream_is_seeded_from_another_of_its_tenant(store):
    async def check():
        server = Server(store)
        server.ask(FRONT, [1, 2, 3])
        sealed = await server.sync.export(FRONT)
        opened, num_tokens = await server.sync.take(BACK, sealed)
        assert num_tokens == 4
        assert (opened.stream, opened.snapshot.num_answers) == (FRONT, 1)
        assert server.drafted(BACK)[:3] == (1, 2, 3)
        with pytest.raises(SealError):
            await server.sync.take(StreamKey("south", "back"), sealed)
        assert server.drafted(StreamKey("south", "back")) == ()

    run(check)


def test_streams_are_listed_page_by_page_wherever_they_are(store):
    async def check():
        before, server = Server(store), Server(store)
        for number in range(0, 9, 2):
            before.ask(StreamKey("north", f"camera {number}"), [1, 2])
        await before.sync.save()
        for number in (1, 3, 4, 5):
            server.ask(StreamKey("north", f"camera {number}"), [3])
        after, pages = None, []
        while not pages or after is not None:
            rows, after = await server.sync.streams("north", after, 3)
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
            return server.sync.take(StreamKey(tenant, f"camera {number}"), sealed)

        await asyncio.gather(*(bring("north", number) for number in range(5)), bring("south", 0))
        assert server.engine.num_at_once == {"north": 1, "south": 1}
        assert len(server.engine.rows("north")) == 5
        assert server.engine.order.index("south") < 2  # it does not wait for all of the other's

    run(check)


def test_a_store_full_of_others_bytes_is_not_believed(store):
    async def check():
        forged = SnapshotSeal([b"somebody else's key"], "tokenizer")
        store.put(FRONT, forged.seal(FRONT, snapshot([7, 7, 7])))
        moved = SEAL.seal(BACK, snapshot([8, 8, 8]))
        store.put(StreamKey("north", "side"), moved)
        server = Server(store)
        assert server.ask(FRONT, [1, 2]) == ()
        assert server.ask(StreamKey("north", "side"), [1, 2])[:3] != (8, 8, 8)
        await until(lambda: server.notes)
        await until(lambda: server.is_at_rest)
        answers = [row["answers"] for row in server.engine.rows("north")]
        assert answers == [1, 1]

    run(check)


def test_a_store_that_is_away_costs_nothing_but_is_told():
    async def check():
        server = Server(Broken())
        server.ask(FRONT, [1, 2, 3])
        await server.sync.save()
        await server.sync.save()
        assert server.drafted(FRONT)[:3] == (1, 2, 3)
        assert len(server.notes) == 1
        with pytest.raises(StoreError):
            await server.sync.forget(FRONT)
        assert server.drafted(FRONT) == ()  # the engine has forgotten it all the same

    run(check)


def test_what_could_not_be_saved_is_saved_later(store):
    async def check():
        server = Server(Broken())
        server.ask(FRONT, [1, 2, 3])
        server.ask(BACK, [4])
        await server.sync.save()
        server.sync._store = store
        await server.sync.save()
        assert {each.name for each in store.streams("north")} == {FRONT.stream, BACK.stream}

    run(check)


def test_a_slow_store_holds_up_few_streams_and_no_other_threads(store):
    class Slow:
        def __init__(self):
            self.asked, self.go_on = [], threading.Event()

        def get(self, stream):
            self.asked.append(stream)
            assert self.go_on.wait(60)

        def __getattr__(self, name):
            return getattr(store, name)

    async def check():
        slow = Slow()
        server = Server(slow)
        streams = [StreamKey("north", f"stream {number}") for number in range(2 * MAX_LOADING)]
        for stream in streams:
            server.ask(stream, [1, 2])
        await until(lambda: len(slow.asked) == STORE_THREADS)
        assert server.sync._loading["north"] == MAX_TENANT_LOADING
        others = [StreamKey(f"tenant {number % 9}", str(number)) for number in range(MAX_LOADING)]
        for stream in others:
            server.ask(stream, [1])
        assert server.sync._loading.total() == MAX_LOADING
        await asyncio.to_thread(lambda: None)  # others' threads are free: it comes back
        assert len(slow.asked) == STORE_THREADS
        slow.go_on.set()
        await until(lambda: server.is_at_rest)
        asked = [*streams[:MAX_TENANT_LOADING], *others[: MAX_LOADING - MAX_TENANT_LOADING]]
        assert len(slow.asked) == MAX_LOADING
        assert set(slow.asked) == set(asked)
        server.ask(streams[-1], [1, 2])
        await until(lambda: streams[-1] in slow.asked)

    run(check)
