"""What an engine remembers of its tenants' streams: to be seen, taken along, and forgotten.

It speaks for all drafters of a cascade, and for what the cascade has learnt of them. What goes in
and out is plain values, because another process asks.
"""

from typing import Any

from headstart.drafters.memory import MemoryReader
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafter import RememberingDrafter, StreamKey


class Remembered:
    """Called from the engine's one thread, between two steps."""

    def __init__(self, cascade: Cascade) -> None:
        self._cascade = cascade
        drafters = cascade.drafters
        self._remembering = [one for one in drafters if isinstance(one, RememberingDrafter)]
        readers = [one for one in drafters if isinstance(one, MemoryReader)]
        self._memory = readers[0].memory if readers else None
        """The one that all drafters of the cascade share, if any of them reads it."""

    def streams(self, tenant: str, after: str | None, max_streams: int) -> list[dict[str, Any]]:
        """One row for each of a tenant's first streams by name, or of those after one."""
        memory = self._memory
        found = () if memory is None else memory.counts(tenant, after, max_streams)
        return [
            {
                "stream": name,
                "answers": count.num_answers,
                "bytes": count.num_bytes,
                "oldest_s": count.oldest_s,
                "newest_s": count.newest_s,
            }
            for name, count in found
        ]

    @property
    def num_answers(self) -> int:
        return 0 if self._memory is None else self._memory.num_answers

    def export(self, tenant: str, stream: str) -> dict[str, Any] | None:
        """A `StreamSnapshot` in its plain form; none if nothing is remembered of the stream."""
        key = StreamKey(tenant, stream)
        snapshot = None if self._memory is None else self._memory.export(key)
        if snapshot is None:
            return None
        return {**snapshot.plain(), "earned": self._cascade.earnings.export(key)}

    def take(self, tenant: str, stream: str, plain: dict[str, Any]) -> tuple[int, int]:
        """Begin to take in a snapshot of that form: how many tokens it costs, and are left."""
        snapshot, key = StreamSnapshot.parse(plain), StreamKey(tenant, stream)
        if self._memory is None:
            return 0, 0
        self._cascade.earnings.take(key, snapshot.earned)
        return self._memory.begin_taking(key, snapshot), self.take_on(tenant, stream)

    def take_on(self, tenant: str, stream: str) -> int:
        """Read one piece more of what a stream takes in; how many tokens are left."""
        return 0 if self._memory is None else self._memory.take_on(StreamKey(tenant, stream))

    def forget(self, tenant: str, stream: str) -> None:
        """Drop all that was said on a stream, and what was learnt of it."""
        key = StreamKey(tenant, stream)
        for drafter in self._remembering:
            drafter.forget(key)
        self._cascade.earnings.forget(tenant, key)

    def forget_tenant(self, tenant: str) -> None:
        for drafter in self._remembering:
            drafter.forget_tenant(tenant)
        self._cascade.earnings.forget(tenant)

    def forget_before(self, time_s: float) -> None:
        """Drop what was said before a time, in seconds since 1970."""
        for drafter in self._remembering:
            drafter.forget_before(time_s)
