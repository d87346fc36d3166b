"""Keeps the memories of streams: loads, saves and forgets them beside the requests.

A stream that asks here for the first time is looked for in the store, and its question does not
wait for that. A stream with new answers is saved every few seconds, and when the server drains, so
that the engine that gets the stream next finds it. A store that is away costs speed and no answer.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from headstart.engine.engine_memory import EngineMemory
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.serve.memory.keeping import MemoryKeeping
from headstart.serve.memory.seal import OpenedMemory, Seal, SealError
from headstart.serve.memory.store import Store, StoredStream, StoreError
from headstart.serve.metrics import MEMORY_STREAMS
from headstart.speculation.drafter import StreamKey

Result = TypeVar("Result")

SWEEP_S = 60.0
"""So often the engine forgets what is older than memories are kept."""
MAX_KNOWN = 1 << 16
"""Streams of which is known that the store was asked for them."""
MAX_LOADING = 64
"""Streams that wait for the store at a time. Beyond, a stream is looked for at a later question."""
STORE_THREADS = 4
"""Of their own: a store that is away must not take those that other requests wait for."""
NOTE_EVERY_S = 60.0
"""A store that is away is noted in the log no more often."""


class MemoryKeeper:
    """An `AnswerListener`. Used from one event loop only."""

    def __init__(
        self,
        memory: EngineMemory,
        keeping: MemoryKeeping,
        seal: Seal | None,
        store: Store | None,
        max_tenant_bytes: int,
        note: Callable[..., None],
    ) -> None:
        """Without a ``seal`` nothing leaves the server; then there is no ``store``."""
        self._memory, self._keeping, self._seal, self._store = memory, keeping, seal, store
        self._max_tenant_bytes, self._note = max_tenant_bytes, note
        self._known: OrderedDict[StreamKey, None] = OrderedDict()
        self._changed: OrderedDict[StreamKey, None] = OrderedDict()
        self._private: OrderedDict[StreamKey, None] = OrderedDict()
        # Or a stream could be saved while it is forgotten, and come back.
        self._lock = asyncio.Lock()
        # Whose memories come in: a tenant that brings many keeps no other's waiting for long.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._noted_s = -NOTE_EVERY_S
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(STORE_THREADS, "memory store")
        self._num_loading = 0
        self._begin(self._save_now_and_then())
        self._begin(self._sweep())

    def asked(self, question: Question) -> None:
        """Look for the memory of a stream that is new here. Who asks privately is not stored."""
        stream = question.stream
        if self._store is None or stream is None:
            return
        if question.is_private:
            _add(self._private, stream)
        if stream in self._known or self._num_loading >= MAX_LOADING:
            return
        _add(self._known, stream)
        self._num_loading += 1
        self._begin(self._load(stream))

    def answered(self, question: Question, record: RequestRecord) -> None:
        """Have the stream saved soon."""
        if self._store is not None and question.stream is not None and record.token_ids:
            _add(self._changed, question.stream)

    async def streams(
        self, tenant: str, after: str | None, max_streams: int
    ) -> tuple[list[dict[str, Any]], str | None]:
        """What is remembered of a tenant's streams, by the engine, in the store, or both.

        Of the first by name after one; and the name to go on after, if there are more.
        """
        here = await self._memory.streams(tenant, after, max_streams + 1)
        rows: dict[str, dict[str, Any]] = {
            row["stream"]: {**row, "stored_bytes": 0} for row in here
        }
        for stored in await self._stored(tenant):
            if after is None or stored.name > after:
                empty = {"stream": stored.name, "answers": 0, "bytes": 0}
                rows.setdefault(stored.name, empty)["stored_bytes"] = stored.num_bytes
        names = sorted(rows)
        shown = names[:max_streams]
        next_after = shown[-1] if len(names) > max_streams else None
        return [rows[name] for name in shown], next_after

    async def export(self, stream: StreamKey) -> bytes | None:
        """A stream's sealed memory; none if nothing is remembered of it."""
        assert self._seal is not None
        snapshot = await self._memory.export(stream)
        if snapshot is None:
            stored = await self._from_store(stream)
            snapshot = None if stored is None else stored.snapshot
        return None if snapshot is None else self._seal.seal(stream, snapshot)

    async def take(self, stream: StreamKey, data: bytes) -> tuple[OpenedMemory, int]:
        """Have a stream remember what a sealed memory of its tenant holds, of any stream.

        One at a time of a tenant, the others wait. Returns how many tokens the engine has read,
        too.
        """
        assert self._seal is not None
        async with self._turns[stream.tenant]:
            opened = self._seal.open(data, stream.tenant)
            num_tokens = await self._memory.take(stream, opened.snapshot)
        if self._store is not None:
            _add(self._changed, stream)
        return opened, num_tokens

    async def forget(self, stream: StreamKey) -> None:
        """Forget a stream, in the engine and in the store."""
        async with self._lock:
            self._changed.pop(stream, None)
            await self._memory.forget(stream)
            if self._store is not None:
                await self._ask_store(self._store.forget, stream)

    async def forget_tenant(self, tenant: str) -> None:
        """Forget all streams of a tenant, in the engine and in the store."""
        async with self._lock:
            for stream in [stream for stream in self._changed if stream.tenant == tenant]:
                del self._changed[stream]
            await self._memory.forget_tenant(tenant)
            if self._store is not None:
                for stored in await self._stored(tenant):
                    await self._ask_store(self._store.forget, StreamKey(tenant, stored.name))

    async def save(self) -> None:
        """Save all streams that have changed. Those that cannot be saved now are tried again."""
        waiting, self._changed = self._changed, OrderedDict()
        try:
            for stream in list(waiting):
                try:
                    async with self._lock:
                        await self._save(stream)
                except StoreError as error:
                    self._failed(error)
                    return
                except Exception as error:
                    self._failed(error)  # of the engine, or of this stream alone
                del waiting[stream]
        finally:
            self._changed = OrderedDict({**waiting, **self._changed})

    async def _save(self, stream: StreamKey) -> None:
        if self._store is None or self._seal is None or stream in self._private:
            return
        snapshot = await self._memory.export(stream)
        if snapshot is None:
            return
        await self._ask_store(self._store.put, stream, self._seal.seal(stream, snapshot))
        MEMORY_STREAMS.labels("saved").inc()

    async def _load(self, stream: StreamKey) -> None:
        try:
            opened = await self._from_store(stream)
            if opened is not None:
                async with self._turns[stream.tenant]:
                    await self._memory.take(stream, opened.snapshot)
                MEMORY_STREAMS.labels("loaded").inc()
        except Exception as error:
            self._failed(error)
        finally:
            self._num_loading -= 1

    async def _from_store(self, stream: StreamKey) -> OpenedMemory | None:
        if self._store is None or self._seal is None:
            return None
        try:
            data = await self._ask_store(self._store.get, stream)
            opened = None if data is None else self._seal.open(data, stream.tenant)
            if opened is not None and opened.stream != stream:
                raise SealError("the store has returned another stream's memory")
            return opened
        except Exception as error:
            self._failed(error)
            return None

    async def _stored(self, tenant: str) -> list[StoredStream]:
        if self._store is None:
            return []
        return await self._ask_store(self._store.streams, tenant)

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._keeping.save_every_s)
            tenants = {stream.tenant for stream in self._changed}
            await self.save()
            for tenant in tenants:
                with contextlib.suppress(Exception):  # it was noted when it could not save
                    await self._keep_to_size(tenant)

    async def _keep_to_size(self, tenant: str) -> None:
        """Have a tenant's oldest memories deleted where the store holds too much of it."""
        assert self._store is not None
        stored = await self._stored(tenant)
        excess = sum(each.num_bytes for each in stored) - self._max_tenant_bytes
        for each in stored:
            if excess <= 0:
                break
            await self._ask_store(self._store.forget, StreamKey(tenant, each.name))
            excess -= each.num_bytes

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # a dead engine remembers nothing
                await self._memory.forget_before(time.time() - self._keeping.keep_s)
            await asyncio.sleep(SWEEP_S)

    def _failed(self, error: Exception) -> None:
        MEMORY_STREAMS.labels("failed").inc()
        if time.monotonic() - self._noted_s >= NOTE_EVERY_S:
            self._noted_s = time.monotonic()
            self._note(event="memory", said=f"{type(error).__name__}: {error}")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Stop working; what was not saved is lost."""
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask_store(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Call the store, which waits for its answer, in a thread."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, partial(work, *arguments))
        except Exception as error:
            raise StoreError(f"the store of memories failed: {error}") from error


def _add(table: OrderedDict[StreamKey, None], stream: StreamKey) -> None:
    table[stream] = None
    if len(table) > MAX_KNOWN:
        table.popitem(last=False)
