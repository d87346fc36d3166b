"""Keeps the memories of streams: loads, saves and forgets them beside the requests.

A stream that asks here for the first time is looked for in the store, and its question does not
wait for that. A stream with new answers is saved every few seconds, and when the server drains, so
that the engine that gets the stream next finds it. A store that is away costs speed and no answer.
"""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from headstart.engine.engine_memory import EngineMemory
from headstart.engine.question import Question
from headstart.engine.request_record import RequestRecord
from headstart.speculation.drafter import StreamKey
from headstart_server.memory.seal import OpenedMemory, SealError, SnapshotSeal
from headstart_server.memory.store import MemorySettings, Store, StoredStream, StoreError
from headstart_server.memory.tenant_streams import Stored, TenantStreams
from headstart_server.metrics import MEMORY_STREAMS

Result = TypeVar("Result")

SWEEP_S = 60.0
"""So often the engine forgets what is older than memories are kept."""
MAX_LOADING, MAX_TENANT_LOADING = 64, 16
"""Streams that wait for the store at a time, of all tenants and of one. Beyond, a stream is looked
for at a later question."""
SHOWN_FOR_S, KEPT_FOR_S = 10.0, 600.0
"""So old may a listing of the store be where it is shown, and where it is kept to its size."""
STORE_THREADS = 4
"""Of their own: a store that is away must not take those that other requests wait for."""
NOTE_EVERY_S = 60.0
"""A store that is away is noted in the log no more often."""


class MemoryStoreSync:
    """An `AnswerListener`. Used from one event loop only."""

    def __init__(
        self,
        memory: EngineMemory,
        settings: MemorySettings,
        seal: SnapshotSeal | None,
        store: Store | None,
        max_tenant_bytes: int,
        note: Callable[..., None],
    ) -> None:
        """Without a ``seal`` nothing leaves the server; then there is no ``store``."""
        self._memory, self._settings, self._seal, self._store = memory, settings, seal, store
        self._note = note
        self._stored = Stored(self._list_stored, max_tenant_bytes)
        # Streams that were looked for in the store, have new answers, or have asked privately.
        self._known, self._changed = TenantStreams(), TenantStreams()
        self._private = TenantStreams()
        # Tenants with more private streams than can be noted: nothing more is saved of them.
        self._unsaved: set[str] = set()
        # Or a stream could be saved while it is forgotten, and come back.
        self._lock = asyncio.Lock()
        # Whose memories come in: a tenant that brings many keeps no other's waiting for long.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._noted_s = -NOTE_EVERY_S
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(STORE_THREADS, "memory store")
        self._loading: Counter[str] = Counter()
        # How often something of a tenant was forgotten, all told.
        self._num_forgotten: Counter[str] = Counter()
        self._begin(self._save_now_and_then())
        self._begin(self._sweep())

    def asked(self, question: Question) -> None:
        """Look for the memory of a stream that is new here. Who asks privately is not stored."""
        stream = question.stream
        if self._store is None or stream is None:
            return
        if question.is_private and self._private.add(stream) is not None:
            self._unsaved.add(stream.tenant)
        loading = self._loading
        is_full = loading.total() >= MAX_LOADING or loading[stream.tenant] >= MAX_TENANT_LOADING
        if stream in self._known or is_full:
            return
        self._known.add(stream)
        loading[stream.tenant] += 1
        self._begin(self._load(stream))

    def answered(self, question: Question, record: RequestRecord) -> None:
        if self._store is not None and question.stream is not None and record.token_ids:
            self._changed.add(question.stream)

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
        there = {} if self._store is None else await self._stored.of(tenant, SHOWN_FOR_S)
        for stored in there.values():
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
            self._changed.add(stream)
        return opened, num_tokens

    async def forget(self, stream: StreamKey) -> None:
        """Forget a stream, in the engine and in the store."""
        async with self._lock:
            self._num_forgotten[stream.tenant] += 1
            self._changed.discard(stream)
            await self._memory.forget(stream)
            await self._forget_stored(stream)

    async def forget_tenant(self, tenant: str) -> None:
        async with self._lock:
            self._num_forgotten[tenant] += 1
            self._changed.discard_tenant(tenant)
            await self._memory.forget_tenant(tenant)
            if self._store is not None:
                for name in list(await self._stored.of(tenant, 0.0)):
                    await self._forget_stored(StreamKey(tenant, name))

    async def save(self) -> None:
        """Save all streams that have changed. Those that cannot be saved now are tried again."""
        for stream in list(self._changed):
            if stream not in self._changed:
                continue  # it was forgotten meanwhile
            try:
                async with self._lock:
                    self._changed.discard(stream)
                    await self._save(stream)
            except BaseException as error:
                self._changed.add(stream)
                if not isinstance(error, Exception):
                    raise  # there was no time
                self._failed(error)
                if isinstance(error, StoreError):
                    return  # it is away; else it was the engine, or this stream alone

    async def _save(self, stream: StreamKey) -> None:
        is_private = stream in self._private or stream.tenant in self._unsaved
        if self._store is None or self._seal is None or is_private:
            return
        snapshot = await self._memory.export(stream)
        if snapshot is None:
            return
        sealed = self._seal.seal(stream, snapshot)
        await self._ask_store(self._store.put, stream, sealed)
        self._stored.saved(stream, len(sealed))
        MEMORY_STREAMS.labels("saved").inc()

    def _is_kept_since(self, tenant: str, num_forgotten: int) -> bool:
        return self._num_forgotten[tenant] == num_forgotten

    async def _load(self, stream: StreamKey) -> None:
        num_forgotten = self._num_forgotten[stream.tenant]
        try:
            opened = await self._from_store(stream)
            if opened is not None:
                async with self._turns[stream.tenant]:
                    # What was read before it was forgotten must not come back.
                    is_wanted = partial(self._is_kept_since, stream.tenant, num_forgotten)
                    await self._memory.take(stream, opened.snapshot, is_wanted)
                MEMORY_STREAMS.labels("loaded").inc()
        except Exception as error:
            self._failed(error)
        finally:
            self._loading[stream.tenant] -= 1

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

    async def _list_stored(self, tenant: str) -> list[StoredStream]:
        assert self._store is not None
        return await self._ask_store(self._store.streams, tenant)

    async def _forget_stored(self, stream: StreamKey) -> None:
        if self._store is not None:
            await self._ask_store(self._store.forget, stream)
            self._stored.forgot(stream)

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._settings.save_every_s)
            tenants = {stream.tenant for stream in self._changed}
            await self.save()
            for tenant in tenants:
                with contextlib.suppress(Exception):  # it was noted when it could not save
                    await self._keep_to_size(tenant)

    async def _keep_to_size(self, tenant: str) -> None:
        """Have a tenant's oldest memories deleted where the store holds too much of it."""
        for stream in await self._stored.excess(tenant, KEPT_FOR_S):
            await self._forget_stored(stream)

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # a dead engine remembers nothing
                await self._memory.forget_before(time.time() - self._settings.keep_s)
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
