"""Memory: drafts from the target's earlier answers on the same stream, from the first token on.

One rule: copy what followed the longest match in those answers, of equal matches the most recent;
where the copy ends, look again. Before the first token the match is the question, so the draft is
the last answer to it. Memory owns what is remembered of each (tenant, stream), bounded in bytes.
"""

import sys
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from headstart.errors import DraftingError
from headstart.speculation.contexts import Contexts, hash_terms
from headstart.speculation.drafter import DraftRequest, StreamKey

CONTEXT_LENGTHS = (8, 4, 2, 1)
"""Of these many tokens the places of occurrence are kept; deepest first."""
MAX_PLACES = 8  # of one context, the most recent ones; more found nothing better in replays
MAX_MATCH = 32  # beyond this a match is as good as any
MAX_PIECES = 8  # copied into one draft: bounds the time of a proposal
MAX_ANSWER_TOKENS = 1024  # of one answer, what follows is not remembered
TOKENS_PER_SLOT = 2  # of a table of contexts, before it is made larger
DEFAULT_MAX_BYTES = 512 << 20
DEFAULT_MAX_TENANT_BYTES = 128 << 20


class StreamMemory:
    """The last answers of one stream, each led by its question's mark. Not thread-safe.

    Answers stand one after another in a log; a place is a token's number in it, counted from the
    first ever learnt. Forgotten ones are passed over, and cut off when they are half of the log.
    """

    __slots__ = ("_contexts", "_first", "_log", "_max_answers", "_starts")

    def __init__(self, max_answers: int) -> None:
        self._max_answers = max_answers
        self._log = array("i")
        self._first = 0  # the place of the log's first token
        self._starts = array("q")  # of the answers remembered
        self._contexts = Contexts(CONTEXT_LENGTHS)

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def num_bytes(self) -> int:
        """What it takes in memory."""
        own = sum(map(sys.getsizeof, (self, self._log, self._starts)))
        return own + self._contexts.num_bytes

    def learn(self, question: str, answer: Sequence[int]) -> None:
        """Remember an answer; the oldest goes when there are too many."""
        said = np.array([_mark(question), *answer[:MAX_ANSWER_TOKENS]], dtype=np.int32)
        start = self._first + len(self._log)
        self._starts.append(start)
        self._log.frombytes(said.tobytes())
        self._contexts.extend(said, np.arange(len(said)), start)
        if len(self) > self._max_answers:
            self.forget(len(self) - self._max_answers)
        if self._num_tokens > TOKENS_PER_SLOT * self._contexts.num_slots:
            self.compact()

    def forget(self, num_answers: int) -> None:
        """Forget the oldest of its answers."""
        del self._starts[:num_answers]
        if 2 * self._num_tokens < len(self._log):
            self._cut()

    def compact(self) -> None:
        """Take no more room than the answers need that are remembered."""
        self._cut()
        tokens = np.array(self._log, dtype=np.int32)
        starts = np.array(self._starts, dtype=np.int64) - self._first
        depths = np.arange(len(tokens)) - np.repeat(starts, np.diff(starts, append=len(tokens)))
        self._contexts.rebuild(tokens, depths, self._first)

    def propose(self, question: str, confirmed: Sequence[int], max_tokens: int) -> list[int]:
        """Copy, piece after piece, what followed the longest recent match."""
        # No match is longer, so the words further back cannot matter; but the mark must be seen.
        said = [_mark(question), *confirmed] if len(confirmed) < MAX_MATCH else [*confirmed]
        said = said[-MAX_MATCH:]
        known = len(said)
        for _ in range(MAX_PIECES):
            missing = max_tokens - (len(said) - known)
            place = self._best_place(said) if missing > 0 else None
            if place is None:
                break
            stop = min(place + missing, self._end(place))
            said += self._log[place - self._first : stop - self._first].tolist()
        return said[known:]

    def _best_place(self, said: list[int]) -> int | None:
        """Of the longest known context's latest places, the one where most of ``said`` matches."""
        if not self._starts:
            return None
        log, first, oldest = self._log, self._first, self._starts[0]
        most = min(len(said), MAX_MATCH)
        terms = hash_terms(said)
        for table in self._contexts.tables:
            if table.length > most:
                continue
            back, place = table.back, table.latest(terms)
            best, longest, num_places = None, table.length - 1, 0
            while place >= oldest:
                last = place - first - 1
                # The mark that an answer begins with is like no other token, and ends a match.
                length, reach = 0, most if last >= most else last + 1
                while length < reach and log[last - length] == said[-1 - length]:
                    length += 1
                if length >= table.length:  # or else other words with the same hash
                    num_places += 1
                    if length > longest:
                        best, longest = place, length
                    if length == most or num_places == MAX_PLACES:
                        break
                distance = back[last + 1]
                if not distance:
                    break
                place -= distance
            if best is not None:
                return best
        return None

    def _end(self, place: int) -> int:
        """Where the answer ends that ``place`` is in."""
        following = bisect_right(self._starts, place)
        if following < len(self._starts):
            return self._starts[following]
        return self._first + len(self._log)

    @property
    def _num_tokens(self) -> int:
        return self._first + len(self._log) - self._starts[0] if self._starts else 0

    def _cut(self) -> None:
        num_forgotten = len(self._log) - self._num_tokens
        del self._log[:num_forgotten]
        self._contexts.cut(num_forgotten)
        self._first += num_forgotten


class TenantMemory:
    """The streams of one tenant, the least recently used first. Not thread-safe."""

    def __init__(self) -> None:
        self.streams: OrderedDict[str, StreamMemory] = OrderedDict()
        self.num_answers = 0
        self._stream_bytes = 0
        self._counted: dict[str, tuple[int, int]] = {}

    @property
    def num_bytes(self) -> int:
        """What it takes in memory."""
        return self._stream_bytes + sys.getsizeof(self.streams) + sys.getsizeof(self._counted)

    def learn(self, name: str, question: str, answer: Sequence[int], max_answers: int) -> None:
        """Remember an answer of a stream, known or new."""
        stream = self.streams.get(name)
        if stream is None:
            stream = self.streams[name] = StreamMemory(max_answers)
        self.streams.move_to_end(name)
        stream.learn(question, answer)
        self._count(name, stream)

    def forget(self, name: str) -> None:
        """Drop a stream, if it is known."""
        if self.streams.pop(name, None) is not None:
            self._uncount(name)

    def forget_some(self) -> None:
        """Drop the least recently used stream; of a single one, the older half."""
        name, stream = next(iter(self.streams.items()))
        if len(self.streams) > 1 or len(stream) == 1:
            self.forget(name)
            return
        stream.forget(len(stream) // 2)
        stream.compact()
        self._count(name, stream)

    def _count(self, name: str, stream: StreamMemory) -> None:
        self._uncount(name)
        counted = (stream.num_bytes + sys.getsizeof(name), len(stream))
        # The count itself is two numbers in a pair.
        num_bytes = counted[0] + sys.getsizeof(counted) + sum(map(sys.getsizeof, counted))
        self._counted[name] = num_bytes, len(stream)
        self._stream_bytes += num_bytes
        self.num_answers += len(stream)

    def _uncount(self, name: str) -> None:
        num_bytes, num_answers = self._counted.pop(name, (0, 0))
        self._stream_bytes -= num_bytes
        self.num_answers -= num_answers


class Memory:
    """A `Drafter` over the memories of many streams. Not thread-safe.

    Bounded in bytes, as they are measured. A tenant over its share forgets streams of its own;
    when all together are over the total, the tenant that holds most does. ``max_streams`` is of
    one tenant.

    A token takes 40 to 80 bytes, whatever is said: an answer of 50 tokens 2 to 4 kB, one of 1,024
    up to 80 kB; a stream 2 kB beside its answers.
    """

    name = "memory"

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_tenant_bytes: int = DEFAULT_MAX_TENANT_BYTES,
        max_answers: int = 512,
        max_streams: int = 4096,
        max_tenants: int = 1024,
    ) -> None:
        if min(max_bytes, max_tenant_bytes, max_answers, max_streams, max_tenants) < 1:
            raise DraftingError("a memory holds at least one answer of one stream: raise the limit")
        self._max_bytes, self._max_tenant_bytes = max_bytes, max_tenant_bytes
        self._max_answers, self._max_streams = max_answers, max_streams
        self._max_tenants = max_tenants
        self._tenants: OrderedDict[str, TenantMemory] = OrderedDict()
        self._requests: dict[str, tuple[StreamKey, str]] = {}

    def __len__(self) -> int:
        """How many streams are remembered."""
        return sum(len(tenant.streams) for tenant in self._tenants.values())

    @property
    def num_answers(self) -> int:
        """How many answers are remembered, of all streams."""
        return sum(tenant.num_answers for tenant in self._tenants.values())

    @property
    def num_bytes(self) -> int:
        """What all streams take in memory."""
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
        stream = tenant.streams.get(key.stream)
        return () if stream is None else stream.propose(question, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        asked = self._requests.pop(request_id, None)
        if asked is None or not answer:
            return
        key, question = asked
        tenant = self._tenants.setdefault(key.tenant, TenantMemory())
        self._tenants.move_to_end(key.tenant)
        tenant.learn(key.stream, question, answer, self._max_answers)
        while tenant.streams and (
            len(tenant.streams) > self._max_streams or tenant.num_bytes > self._max_tenant_bytes
        ):
            tenant.forget_some()
        self._keep_to_total()

    def forget(self, stream: StreamKey) -> None:
        """Drop everything remembered of a stream."""
        tenant = self._tenants.get(stream.tenant)
        if tenant is not None:
            tenant.forget(stream.stream)
            self._drop_if_empty(stream.tenant)

    def _keep_to_total(self) -> None:
        while len(self._tenants) > self._max_tenants:
            self._tenants.popitem(last=False)
        while self.num_bytes > self._max_bytes and self._tenants:
            largest = max(self._tenants, key=lambda name: self._tenants[name].num_bytes)
            self._tenants[largest].forget_some()
            self._drop_if_empty(largest)

    def _drop_if_empty(self, tenant: str) -> None:
        if not self._tenants[tenant].streams:
            del self._tenants[tenant]


def _mark(question: str) -> int:
    """A stand-in for the question before its answer's first token; no token id is negative."""
    return -1 - (hash(question) & 0x3FFFFFFF)
