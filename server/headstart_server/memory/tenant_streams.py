"""Names of streams, noted for each tenant apart: none pushes out another's."""

from collections import OrderedDict
from collections.abc import Iterator

from headstart.speculation.drafter import StreamKey

MAX_STREAMS = 4096
"""Of one tenant: an engine remembers no more."""


class TenantStreams:
    """A set of streams, bounded for each tenant. Not thread-safe."""

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
        """Forget one, if it is noted."""
        self._tenants.get(stream.tenant, OrderedDict()).pop(stream, None)

    def discard_tenant(self, tenant: str) -> None:
        """Forget all of a tenant."""
        self._tenants.pop(tenant, None)
