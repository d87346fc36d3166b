"""What is remembered of one tenant: the answers of each of its streams, and of all together."""

import sys
from collections import OrderedDict
from collections.abc import Sequence

from headstart.speculation.stream_memory import StreamMemory
from headstart.speculation.stream_snapshot import MAX_TOKENS, StreamSnapshot

MAX_SITE_ANSWERS = 2048  # of all streams, the newest; 512 lose 2% in replays of 1,100 answers


class TenantMemory:
    """The streams of one tenant, the least recently used first. Not thread-safe.

    If it is ``warm``, a stream that knows little yet quotes the others too: a *site* keeps the
    tenant's newest answers, whichever stream they are of. A tenant with a single stream has no
    site. It would hold the same answers again.
    """

    def __init__(self, max_answers: int, *, warm: bool) -> None:
        self.streams: OrderedDict[str, StreamMemory] = OrderedDict()
        self.num_answers = 0
        self._max_answers = max_answers
        self._warm = warm
        self._site: StreamMemory | None = None
        self._site_bytes = 0
        self._stream_bytes = 0
        self._counted: dict[str, tuple[int, int]] = {}

    @property
    def num_bytes(self) -> int:
        """What it takes in memory."""
        tables = sys.getsizeof(self.streams) + sys.getsizeof(self._counted)
        return self._stream_bytes + self._site_bytes + tables

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered."""
        return not self.streams and self._site is None

    def memories(self, name: str) -> list[StreamMemory]:
        """What a stream may quote, its own answers first."""
        own = self.streams.get(name)
        found = [] if own is None else [own]
        if self._warm:
            site = self._site
            if site is None and self.streams:
                site = next(reversed(self.streams.values()))
            if site is not None and site is not own:
                found.append(site)
        return found

    def learn(self, name: str, question: str, answer: Sequence[int], said_at_s: float) -> None:
        """Remember an answer of a stream, known or new."""
        self._make_site(name)
        stream = self.streams.get(name)
        if stream is None:
            stream = self.streams[name] = StreamMemory(self._max_answers)
        self.streams.move_to_end(name)
        stream.learn(question, answer, said_at_s)
        self._count(name, stream)
        if self._site is not None:
            self.learn_for_all(question, answer, said_at_s)

    def learn_for_all(self, question: str, answer: Sequence[int], said_at_s: float) -> None:
        """Remember an answer that every stream may quote. Only where it is warm."""
        if self._site is None:
            self._site = StreamMemory(MAX_SITE_ANSWERS)
        self._site.learn(question, answer, said_at_s)
        self._site_bytes = self._site.num_bytes

    def export(self, name: str) -> StreamSnapshot | None:
        """The newest answers of a stream; none if nothing is remembered of it."""
        stream = self.streams.get(name)
        if stream is None:
            return None
        said, lengths, said_at_s = stream.newest(MAX_TOKENS)
        return StreamSnapshot(said, tuple(lengths), tuple(said_at_s))

    def take(self, name: str, snapshot: StreamSnapshot) -> None:
        """Remember answers from elsewhere, as if they had been said here before all others."""
        self._make_site(name)
        own = self.export(name)
        added = snapshot if own is None else snapshot.without(own)
        stream = self.streams[name] = StreamMemory(self._max_answers)
        self.streams.move_to_end(name)
        for each in (added, own):
            if each is not None and each.num_answers:
                stream.extend(each.said, each.lengths, each.said_at_s)
        self._count(name, stream)
        if self._site is not None and added.num_answers:
            self._site.extend(added.said, added.lengths, added.said_at_s)
            self._site_bytes = self._site.num_bytes

    def _make_site(self, name: str) -> None:
        """A site is there before a second stream is."""
        if self._warm and self._site is None and len(self.streams) > (name in self.streams):
            self._site = next(reversed(self.streams.values())).copy(MAX_SITE_ANSWERS)

    def forget(self, name: str) -> None:
        """Drop a stream, and the site, which may hold what the stream said."""
        self._drop(name)
        self._drop_site()

    def forget_before(self, time_s: float) -> None:
        """Forget what was said before a time."""
        for name, stream in list(self.streams.items()):
            if stream.forget_before(time_s):
                if len(stream):
                    self._count(name, stream)
                else:
                    self._drop(name)
        if self._site is not None and self._site.forget_before(time_s):
            if len(self._site):
                self._site_bytes = self._site.num_bytes
            else:
                self._drop_site()

    def forget_oldest(self) -> None:
        """Drop the least recently used stream."""
        self._drop(next(iter(self.streams)))

    def forget_some(self) -> None:
        """Drop the least recently used stream; of a single one, the older half.

        A site that takes more than all streams loses its older half first.
        """
        if self._site is not None and self._site_bytes > self._stream_bytes:
            if len(self._site) > 1:
                _halve(self._site)
                self._site_bytes = self._site.num_bytes
            else:
                self._drop_site()
            return
        name, stream = next(iter(self.streams.items()))
        if len(self.streams) > 1 or len(stream) == 1:
            self._drop(name)
        else:
            _halve(stream)
            self._count(name, stream)

    def _drop(self, name: str) -> None:
        self.streams.pop(name, None)
        self._uncount(name)

    def _drop_site(self) -> None:
        self._site, self._site_bytes = None, 0

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


def _halve(memory: StreamMemory) -> None:
    memory.forget(len(memory) // 2)
    memory.compact()
