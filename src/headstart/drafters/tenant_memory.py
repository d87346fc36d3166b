"""What is remembered of one tenant: the answers of each of its streams, and of all together."""

import math
import sys
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headstart.drafters.stream_memory import StreamMemory
from headstart.drafters.stream_snapshot import MAX_TOKENS, StreamSnapshot

MAX_SITE_ANSWERS = 2048  # of all streams, the newest; 512 lose 2% in replays of 1,100 answers
MAX_SITE_TOKENS = 1 << 18  # of them: a table of so many is made anew in a tenth of a second


class StreamCount(NamedTuple):
    """How much is remembered of a stream, and of when."""

    num_bytes: int
    num_answers: int
    oldest_s: float
    newest_s: float


_NOTHING = StreamCount(0, 0, math.inf, -math.inf)


class TenantMemory:
    """The streams of one tenant, the least recently used first. Not thread-safe.

    If it is ``warm``, a stream that knows little yet quotes the others too: a *site* keeps the
    tenant's newest answers, whichever stream they are of. A tenant with a single stream has no
    site. It would hold the same answers again. What that stream said before there was a site is
    quoted from the stream itself, its *founder*: nothing is copied, so a site costs nothing to make
    and nothing to forget.
    """

    def __init__(self, max_answers: int, *, warm: bool) -> None:
        self.streams: OrderedDict[str, StreamMemory] = OrderedDict()
        self.num_answers = 0
        self._max_answers = max_answers
        self._warm = warm
        self._site: StreamMemory | None = None
        self._founder: str | None = None
        # Whether the site may hold words of a stream that had to make room.
        self._site_outlived_some = False
        self._site_bytes = 0
        self._stream_bytes = 0
        # Kept up to date by each change, so that nobody who asks walks through the streams.
        self._counted: dict[str, StreamCount] = {}
        self._names: list[str] = []  # sorted

    @property
    def num_bytes(self) -> int:
        tables = sum(map(sys.getsizeof, (self.streams, self._counted, self._names)))
        return self._stream_bytes + self._site_bytes + tables

    @property
    def is_empty(self) -> bool:
        return not self.streams and self._site is None

    def counts(self, after: str | None, max_streams: int) -> Iterator[tuple[str, StreamCount]]:
        """Of the first streams by name after one, or of the first of all."""
        first = 0 if after is None else bisect_right(self._names, after)
        for name in self._names[first : first + max_streams]:
            yield name, self._counted[name]

    def memories(self, name: str) -> list[StreamMemory]:
        """What a stream may quote, its own answers first."""
        found = [self.streams.get(name)]
        if self._warm and self._site is not None:
            found.append(self._site)
            if self._founder is not None and self._founder != name:
                found.append(self.streams.get(self._founder))
        elif self._warm and self.streams:
            newest = next(reversed(self.streams))
            found.append(None if newest == name else self.streams[newest])
        return [memory for memory in found if memory is not None]

    def learn(self, name: str, question: str, answer: Sequence[int], said_at_s: float) -> None:
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
            self._site = _new_site()
        self._site.learn(question, answer, said_at_s)
        self._site_learnt()

    def export(self, name: str) -> StreamSnapshot | None:
        """The newest answers of a stream; none if nothing is remembered of it."""
        stream = self.streams.get(name)
        if stream is None:
            return None
        said, lengths, said_at_s = stream.newest(MAX_TOKENS)
        return StreamSnapshot(said, tuple(lengths), tuple(said_at_s))

    def put(self, name: str, stream: StreamMemory) -> None:
        self._make_site(name)
        self.streams[name] = stream
        self.streams.move_to_end(name)
        self._count(name, stream)

    def take_for_all(self, name: str, snapshot: StreamSnapshot) -> None:
        """Have the other streams quote answers that one is about to take in."""
        self._make_site(name)
        if self._site is not None and snapshot.num_answers:
            self._site.extend(snapshot.said, snapshot.lengths, snapshot.said_at_s)
            self._site_learnt()

    def _make_site(self, name: str) -> None:
        """A site is there before a second stream is."""
        if self._warm and self._site is None and len(self.streams) > (name in self.streams):
            self._site, self._founder = _new_site(), next(reversed(self.streams))
            self._site_bytes = self._site.num_bytes

    def _site_learnt(self) -> None:
        assert self._site is not None
        self._site_bytes = self._site.num_bytes
        if len(self._site) >= self._max_answers:
            self._founder = None  # the site knows as much by now, and newer things

    def forget(self, name: str) -> None:
        """Drop a stream, and the site, which may hold what the stream said.

        A stream that was never there leaves everything as it is.
        """
        if name in self.streams or self._site_outlived_some:
            self._drop(name)
            self._drop_site()

    def forget_before(self, time_s: float) -> None:
        for name, count in list(self._counted.items()):
            stream = self.streams[name]
            if count.oldest_s < time_s and stream.forget_before(time_s):
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
        self._drop(next(iter(self.streams)))
        self._site_outlived_some = self._site is not None

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
            self.forget_oldest()
        else:
            _halve(stream)
            self._count(name, stream)

    def _drop(self, name: str) -> None:
        self.streams.pop(name, None)
        self._uncount(name)

    def _drop_site(self) -> None:
        self._site, self._founder, self._site_bytes = None, None, 0
        self._site_outlived_some = False

    def _count(self, name: str, stream: StreamMemory) -> None:
        self._uncount(name)
        own = stream.num_bytes + sys.getsizeof(name)
        count = StreamCount(own, len(stream), *stream.said_between_s)
        # The count itself is four numbers in a tuple.
        num_bytes = own + sys.getsizeof(count) + sum(map(sys.getsizeof, count))
        self._counted[name] = count._replace(num_bytes=num_bytes)
        insort(self._names, name)
        self._stream_bytes += num_bytes
        self.num_answers += len(stream)

    def _uncount(self, name: str) -> None:
        count = self._counted.pop(name, _NOTHING)
        if count is not _NOTHING:
            del self._names[bisect_left(self._names, name)]
        self._stream_bytes -= count.num_bytes
        self.num_answers -= count.num_answers


def _new_site() -> StreamMemory:
    return StreamMemory(MAX_SITE_ANSWERS, MAX_SITE_TOKENS)


def _halve(memory: StreamMemory) -> None:
    memory.forget(len(memory) // 2)
    memory.compact()
