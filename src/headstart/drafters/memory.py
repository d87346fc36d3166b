"""Memory: drafts from the target's earlier answers on the same stream, from the first token on.

How an answer is found is the rule of `StreamMemory`. A stream with little of its own also quotes
the other streams of its tenant; see `TenantMemory`. Nothing is ever quoted to another tenant.
Memory owns what is remembered of all tenants, bounded in bytes.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from headstart.drafters.stream_memory import StreamMemory, quote
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.drafters.tenant_memory import StreamCount, TenantMemory
from headstart.errors import DraftingError
from headstart.speculation.drafter import Drafter, DraftRequest, StreamKey

PIECE_TOKENS = 4096
"""Read between two steps: some 2 ms."""
DEFAULT_MAX_BYTES = 512 << 20
DEFAULT_MAX_TENANT_BYTES = 128 << 20


class Taking:
    """One stream that takes in a snapshot: its answers come before all that were said here.

    To note where each context of a large memory stands takes a sixth of a second, and whoever takes
    it in is the engine's one thread: all answers of all tenants would wait. So it is read in
    pieces, with steps of the engine between them, and the stream goes on with what it knows.
    """

    def __init__(
        self, tenant: TenantMemory, name: str, snapshot: StreamSnapshot, max_answers: int
    ) -> None:
        self._name = name
        own, self._before = tenant.export(name), tenant.streams.get(name)
        self._num_before = self._before.num_learnt if self._before is not None else 0
        added = snapshot if own is None else snapshot.without(own)
        self._added = deque(added.parts(PIECE_TOKENS))
        self._own = deque(() if own is None else own.parts(PIECE_TOKENS))
        self.num_tokens = added.num_tokens + (0 if own is None else own.num_tokens)
        self._stream = StreamMemory(max_answers)

    @property
    def num_left(self) -> int:
        """How many tokens have still to be read."""
        return sum(each.num_tokens for each in (*self._added, *self._own))

    def read(self, tenant: TenantMemory) -> None:
        """Read one piece. After the last the stream is the new one."""
        pieces = self._added or self._own
        if pieces:
            piece = pieces[0]
            if pieces is self._added:
                tenant.take_for_all(self._name, piece)
            self._stream.extend(piece.said, piece.lengths, piece.said_at_s)
            pieces.popleft()
        if self._added or self._own:
            return
        now = tenant.streams.get(self._name)
        if now is not None:  # and it may have said more meanwhile
            num_known = self._num_before if now is self._before else 0
            if num_said := now.num_learnt - num_known:
                self._stream.extend(*now.latest(num_said))
        if len(self._stream):
            tenant.put(self._name, self._stream)


@runtime_checkable
class MemoryReader(Drafter, Protocol):
    """A drafter that copies from a memory, and tells it of its requests."""

    @property
    def memory(self) -> "Memory":
        """The one of its cascade."""
        ...


class Memory:
    """A `Drafter` over the memories of many streams. Not thread-safe.

    Bounded in bytes, as they are measured. A tenant over its share forgets streams of its own;
    when all together are over the total, the tenant that holds most does. ``max_streams`` is of
    one tenant. Unless it is ``warm``, a stream quotes nothing but its own answers.

    A token takes 40 to 80 bytes, whatever is said: an answer of 50 tokens 2 to 4 kB, one of 1,024
    up to 80 kB; a stream 2 kB beside its answers. A tenant's newest answers are held twice where
    several streams of it may quote them.
    """

    name = "memory"

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_tenant_bytes: int = DEFAULT_MAX_TENANT_BYTES,
        max_answers: int = 512,
        max_streams: int = 4096,
        max_tenants: int = 1024,
        *,
        warm: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if min(max_bytes, max_tenant_bytes, max_answers, max_streams, max_tenants) < 1:
            raise DraftingError("a memory holds at least one answer of one stream: raise the limit")
        self._max_bytes, self._max_tenant_bytes = max_bytes, max_tenant_bytes
        self._max_answers, self._max_streams = max_answers, max_streams
        self._max_tenants = max_tenants
        self._warm = warm
        self._clock = clock
        self._tenants: OrderedDict[str, TenantMemory] = OrderedDict()
        self._requests: dict[str, tuple[StreamKey, str]] = {}
        self._taking: tuple[StreamKey, Taking] | None = None

    @property
    def memory(self) -> "Memory":
        """Itself: it reads no other."""
        return self

    def __len__(self) -> int:
        return sum(len(tenant.streams) for tenant in self._tenants.values())

    @property
    def num_answers(self) -> int:
        return sum(tenant.num_answers for tenant in self._tenants.values())

    @property
    def num_bytes(self) -> int:
        return sum(tenant.num_bytes for tenant in self._tenants.values())

    def begin(self, request: DraftRequest) -> None:
        if request.remembered:
            self._requests[request.id] = (request.stream, request.question)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        asked = self._requests.get(request_id)
        tenant = self._tenants.get(asked[0].tenant) if asked is not None else None
        if asked is None or tenant is None:
            return ()
        key, question = asked
        return quote(tenant.memories(key.stream), question, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        asked = self._requests.pop(request_id, None)
        if asked is None or not answer:
            return
        key, question = asked
        self._tenant(key.tenant).learn(key.stream, question, answer, self._clock())
        self._keep_to_limits(key.tenant)

    def seed(self, tenant: str, question: str, answer: Sequence[int]) -> None:
        """Remember an answer of no stream, which all streams of a tenant may quote."""
        if not self._warm:
            raise DraftingError("a memory that is not warm quotes no log: leave one of them out")
        self._tenant(tenant).learn_for_all(question, answer, self._clock())
        self._keep_to_limits(tenant)

    def forget(self, stream: StreamKey) -> None:
        """Drop everything remembered of a stream; its tenant's others lose what they shared."""
        if self._taking is not None and self._taking[0] == stream:
            self._taking = None
        tenant = self._tenants.get(stream.tenant)
        if tenant is not None:
            tenant.forget(stream.stream)
            self._drop_if_empty(stream.tenant)

    def forget_tenant(self, tenant: str) -> None:
        if self._taking is not None and self._taking[0].tenant == tenant:
            self._taking = None
        self._tenants.pop(tenant, None)

    def forget_before(self, time_s: float) -> None:
        """Drop what was said before a time, in seconds since 1970."""
        for name, tenant in list(self._tenants.items()):
            tenant.forget_before(time_s)
            self._drop_if_empty(name)

    def counts(
        self, tenant: str, after: str | None, max_streams: int
    ) -> Iterable[tuple[str, StreamCount]]:
        """How much is remembered of a tenant's streams: of the first by name after one."""
        found = self._tenants.get(tenant)
        return () if found is None else found.counts(after, max_streams)

    def export(self, stream: StreamKey) -> StreamSnapshot | None:
        """A copy of what is remembered of a stream; none if nothing is."""
        tenant = self._tenants.get(stream.tenant)
        return None if tenant is None else tenant.export(stream.stream)

    def take(self, stream: StreamKey, snapshot: StreamSnapshot) -> None:
        """Remember a stream's answers from elsewhere, besides those it has here."""
        self.begin_taking(stream, snapshot)
        while self.take_on(stream):
            pass

    def begin_taking(self, stream: StreamKey, snapshot: StreamSnapshot) -> int:
        """The same piece by piece, by `take_on`; returns how many tokens there are to read.

        One stream takes in at a time: another that had begun is given up.
        """
        # Another machine's clock may be ahead: nothing is kept for longer because of that.
        now_s = self._clock()
        said_at_s = tuple(min(at_s, now_s) for at_s in snapshot.said_at_s)
        tenant, given = self._tenant(stream.tenant), replace(snapshot, said_at_s=said_at_s)
        self._taking = stream, Taking(tenant, stream.stream, given, self._max_answers)
        self._drop_if_empty(stream.tenant)  # until it has something
        return self._taking[1].num_tokens

    def take_on(self, stream: StreamKey) -> int:
        """Read one piece more; returns how many tokens are left, 0 also where it was given up."""
        if self._taking is None or self._taking[0] != stream:
            return 0
        taking = self._taking[1]
        taking.read(self._tenant(stream.tenant))
        self._keep_to_limits(stream.tenant)
        if not taking.num_left:
            self._taking = None
        return taking.num_left

    def _tenant(self, name: str) -> TenantMemory:
        """One that is known or new, and now the most recently used."""
        if name not in self._tenants:
            self._tenants[name] = TenantMemory(self._max_answers, warm=self._warm)
        self._tenants.move_to_end(name)
        return self._tenants[name]

    def _keep_to_limits(self, name: str) -> None:
        """After a tenant has learnt."""
        tenant = self._tenants[name]
        while len(tenant.streams) > self._max_streams:
            tenant.forget_oldest()
        while not tenant.is_empty and tenant.num_bytes > self._max_tenant_bytes:
            tenant.forget_some()
        self._drop_if_empty(name)
        while len(self._tenants) > self._max_tenants:
            self._tenants.popitem(last=False)
        while self.num_bytes > self._max_bytes and self._tenants:
            largest = max(self._tenants, key=lambda tenant: self._tenants[tenant].num_bytes)
            self._tenants[largest].forget_some()
            self._drop_if_empty(largest)

    def _drop_if_empty(self, tenant: str) -> None:
        if self._tenants[tenant].is_empty:
            del self._tenants[tenant]
