"""A bounded table that many tenants write to, and where none can push out another's share.

In a table of the least recently used kind, the tenant that writes most pushes out the others. Here,
when the table is over its bound, the tenant with the most entries loses the oldest of them.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class FairTable(Generic[Key, Value]):
    """Values by tenant and key, at most ``max_entries`` of all tenants. Not thread-safe."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._tenants: dict[str, OrderedDict[Key, Value]] = {}
        self._num_entries = 0

    def __len__(self) -> int:
        return self._num_entries

    def get(self, tenant: str, key: Key) -> Value | None:
        """What was put there last, if it is still kept."""
        entries = self._tenants.get(tenant)
        return None if entries is None else entries.get(key)

    def put(self, tenant: str, key: Key, value: Value) -> None:
        """Set a value, which is now the tenant's newest."""
        entries = self._tenants.setdefault(tenant, OrderedDict())
        self._num_entries += key not in entries
        entries[key] = value
        entries.move_to_end(key)
        while self._num_entries > self._max_entries:
            self._lose_one()

    def keys(self, tenant: str) -> list[Key]:
        """Of a tenant's entries, the oldest first."""
        return list(self._tenants.get(tenant, ()))

    def remove(self, tenant: str, key: Key) -> None:
        entries = self._tenants.get(tenant)
        if entries is not None and key in entries:
            del entries[key]
            self._num_entries -= 1
            if not entries:
                del self._tenants[tenant]

    def _lose_one(self) -> None:
        # Of equals the one that has been there for longest: a newcomer finds room.
        largest = max(self._tenants, key=lambda tenant: len(self._tenants[tenant]))
        self._tenants[largest].popitem(last=False)
        self._num_entries -= 1
        if not self._tenants[largest]:
            del self._tenants[largest]
