"""Who may come in, over HTTP and over live sockets: keys, requests in flight, memory, rates."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headstart_server import memory_pressure
from headstart_server.admission import Admission, Slot
from headstart_server.auth import ANYONE, Caller, KeyFile
from headstart_server.memory_pressure import MemoryPressure
from headstart_server.quota import Quota
from headstart_server.request_delays import RequestDelays
from headstart_server.settings import Settings


class Entrance:
    """Used from one event loop only."""

    def __init__(self, settings: Settings, quota: Quota, tell: Callable[[str], None]) -> None:
        """``tell`` is called with what became of the file of keys when it changes."""
        self._is_open = settings.open
        self._keys = KeyFile(settings.keys, settings.path, tell)
        self.quota = quota
        self.delays = RequestDelays()
        self.memory = MemoryPressure(settings.limits.min_free_bytes, memory_pressure.free_bytes)
        self.admission = Admission(settings.limits)

    def caller(self, authorization: str) -> Caller | None:
        """Whose ``Bearer`` key a header holds, as of now; none without a valid key."""
        return ANYONE if self._is_open else self._keys.keys.caller(authorization)

    def has_tenant(self, name: str) -> bool:
        """Whether a tenant has a valid key, as of now; on an open server there is only one."""
        return self._is_open or self._keys.keys.has_tenant(name)

    @contextmanager
    def admit(self, tenant: str) -> Iterator[Slot]:
        """Count a request as in flight until the block is left, or raise a refusal."""
        with self.admission.admit(tenant) as slot:
            self.memory.admit()
            self.quota.admit(tenant)
            yield slot
