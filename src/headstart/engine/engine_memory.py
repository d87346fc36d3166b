"""Asks an engine what it remembers, from the process that answers requests.

vLLM can call a method of its engine core by name, between two steps; that is how its own front end
adds adapters or resets caches. Memory is asked in the same way. All contact with that interface is
in this file, both ends of it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.engine.engine_client import EngineClient, data_parallel_rank
from headstart.speculation.drafter import StreamKey

_PREFIX = "headstart_memory_"
_CALLS = ("streams", "export", "take", "take_on", "forget", "forget_tenant", "forget_before")
"""Methods of `Remembered`."""


def answer_calls() -> None:
    """Have vLLM's engine core answer for its scheduler's memory. May be called any number of times.

    Called in the engine's process.
    """
    from vllm.v1.engine.core import EngineCore

    for name in _CALLS:
        setattr(EngineCore, _PREFIX + name, _method(name))


def _method(name: str) -> Callable[[Any, list[Any]], Any]:
    def call(self: Any, arguments: list[Any]) -> Any:
        return getattr(self.scheduler.remembered, name)(*arguments)

    return call


class EngineMemory:
    """The memories of an engine, or of all its data-parallel ranks. Used from one event loop."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine
        self._taking = asyncio.Lock()

    async def streams(
        self, tenant: str, after: str | None, max_streams: int
    ) -> list[dict[str, Any]]:
        """One row for each of the first streams of a tenant; see `Remembered.streams`.

        Of several ranks each gives its first ones, so there may be more; they are in no order.
        """
        found = await self._call_all("streams", tenant, after, max_streams)
        return [row for rows in found for row in rows]

    async def export(self, stream: StreamKey) -> StreamSnapshot | None:
        """A copy of what is remembered of a stream; none if nothing is."""
        plain = await self._call(stream, "export", stream.tenant, stream.stream)
        return None if plain is None else StreamSnapshot.parse(plain)

    async def take(
        self,
        stream: StreamKey,
        snapshot: StreamSnapshot,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> int:
        """Have a stream remember what a snapshot holds, besides what it remembers already.

        Returns how many tokens the engine has read for it. It reads them in pieces with steps
        between, of one stream at a time: no answer waits for more than a piece. ``is_wanted`` is
        asked when it is the stream's turn: what is forgotten later is forgotten behind it.
        """
        async with self._taking:
            if not is_wanted():
                return 0
            names = (stream.tenant, stream.stream)
            num_tokens, num_left = await self._call(stream, "take", *names, snapshot.plain())
            while num_left:
                num_left = await self._call(stream, "take_on", *names)
            return int(num_tokens)

    async def forget(self, stream: StreamKey) -> None:
        # By every rank: streams were elsewhere when there were more ranks, or fewer.
        await self._call_all("forget", stream.tenant, stream.stream)

    async def forget_tenant(self, tenant: str) -> None:
        await self._call_all("forget_tenant", tenant)

    async def forget_before(self, time_s: float) -> None:
        """Have everything forgotten that was said before a time, in seconds since 1970."""
        await self._call_all("forget_before", time_s)

    async def _call(self, stream: StreamKey, name: str, *arguments: Any) -> Any:
        core = self._engine.engine_core
        rank = data_parallel_rank(stream, self._engine.vllm_config.parallel_config)
        engine = core.core_engines[rank or 0]
        return await core._call_utility_async(_PREFIX + name, list(arguments), engine=engine)

    async def _call_all(self, name: str, *arguments: Any) -> list[Any]:
        found: list[Any] = await self._engine.engine_core.call_utility_all_async(
            _PREFIX + name, list(arguments)
        )
        return found
