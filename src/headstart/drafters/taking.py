"""A stream's memory that comes in from elsewhere, piece by piece.

To note where each context of a large memory stands takes a sixth of a second, and whoever takes it
in is the engine's one thread: all answers of all tenants would wait. So it is read in pieces, with
steps of the engine between them. The stream goes on meanwhile with what it knows.
"""

from collections import deque

from headstart.drafters.stream_memory import StreamMemory
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.drafters.tenant_memory import TenantMemory

PIECE_TOKENS = 4096
"""Read between two steps: some 2 ms."""


class Taking:
    """One stream that takes in a snapshot: its answers come before all that were said here."""

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
