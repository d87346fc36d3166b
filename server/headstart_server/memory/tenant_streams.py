"""What a server knows of each tenant's streams: those noted here, and those in the store.

A store is listed when a tenant is first looked at, and again after a while, because other servers
write there too. In between it is known what this server has saved and forgotten.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping

from headstart.speculation.drafter import StreamKey
from headstart_server.memory.store import StoredStream

MAX_STREAMS = 4096
"""Of one tenant: an engine remembers no more."""


class TenantStreams:
    """A set of streams, bounded for each tenant: none pushes out another's. Not thread-safe."""

    def __init__(self) -> None:
        self._tenants: dict[str, OrderedDict[StreamKey, None]] = {}

    def __contains__(self, stream: StreamKey) -> bool:
        return stream in self._tenants.get(stream.tenant, ())

    def __iter__(self) -> Iterator[StreamKey]:
        """Of each tenant those noted first come first."""
        for streams in self._tenants.values():
            yield from streams

    def add(self, stream: StreamKey) -> StreamKey | None:
        """Note one; returns the one of its tenant that had to go for it, if any had."""
        streams = self._tenants.setdefault(stream.tenant, OrderedDict())
        streams[stream] = None
        return streams.popitem(last=False)[0] if len(streams) > MAX_STREAMS else None

    def discard(self, stream: StreamKey) -> None:
        self._tenants.get(stream.tenant, OrderedDict()).pop(stream, None)

    def discard_tenant(self, tenant: str) -> None:
        self._tenants.pop(tenant, None)


class _Listing:
    """Of one tenant."""

    def __init__(self) -> None:
        self.streams: dict[str, StoredStream] = {}
        self.listed_s: float | None = None
        self.being_listed = 0
        self.meanwhile: list[tuple[str, StoredStream | None]] = []
        """What was saved and forgotten while the store was being listed."""

    def change(self, name: str, stored: StoredStream | None) -> None:
        self.streams.pop(name, None)
        if stored is not None:
            self.streams[name] = stored  # it is the newest now


class Stored:
    """Used from one event loop only."""

    def __init__(
        self,
        list_streams: Callable[[str], Awaitable[list[StoredStream]]],
        max_tenant_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``list_streams`` asks the store for a tenant's, those saved longest ago first."""
        self._list_streams, self._clock = list_streams, clock
        self._max_tenant_bytes = max_tenant_bytes
        self._tenants: dict[str, _Listing] = {}

    async def of(self, tenant: str, max_age_s: float) -> Mapping[str, StoredStream]:
        """A tenant's streams by name, those saved longest ago first."""
        listing = self._tenants.setdefault(tenant, _Listing())
        now_s = self._clock()
        if listing.listed_s is None or now_s - listing.listed_s > max_age_s:
            listing.being_listed += 1
            try:
                found = await self._list_streams(tenant)
                listing.streams = {each.name: each for each in found}
                listing.listed_s = now_s
                for name, stored in listing.meanwhile:
                    listing.change(name, stored)
            finally:
                listing.being_listed -= 1
                if not listing.being_listed:
                    listing.meanwhile.clear()
        return listing.streams

    def saved(self, stream: StreamKey, num_bytes: int) -> None:
        self._change(stream, StoredStream(stream.stream, num_bytes, time.time()))

    def forgot(self, stream: StreamKey) -> None:
        self._change(stream, None)

    async def excess(self, tenant: str, max_age_s: float) -> list[StreamKey]:
        """The streams to forget because a tenant has too many stored, or too large ones."""
        streams = await self.of(tenant, max_age_s)
        num_bytes, num_streams = sum(each.num_bytes for each in streams.values()), len(streams)
        found = []
        for each in streams.values():
            if num_bytes <= self._max_tenant_bytes and num_streams <= MAX_STREAMS:
                break
            found.append(StreamKey(tenant, each.name))
            num_bytes, num_streams = num_bytes - each.num_bytes, num_streams - 1
        return found

    def _change(self, stream: StreamKey, stored: StoredStream | None) -> None:
        listing = self._tenants.setdefault(stream.tenant, _Listing())
        listing.change(stream.stream, stored)
        if listing.being_listed:
            listing.meanwhile.append((stream.stream, stored))
