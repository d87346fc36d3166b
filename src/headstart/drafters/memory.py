"""Words the target itself said before: this stream's earlier answers, from the first token on.

The rule is one: copy what followed the longest match, and of equals the most recent; where the
copy ends, look again. Before the first token the match is the question, so the draft is the last
answer to it. It owns what is remembered of each (tenant, stream), bounded in answers and in
streams; it knows nothing of the scene.
"""

from collections import OrderedDict
from collections.abc import Sequence

from headstart.drafters.port import Ask, StreamKey
from headstart.errors import DraftingError

CONTEXT_LENGTHS = (8, 4, 2, 1)
"""Of these many tokens the places of occurrence are kept; deepest first."""
MAX_PLACES = 8  # of one context, the most recent ones; more found nothing better in replays
MAX_MATCH = 32  # beyond this a match is as good as any
MAX_PIECES = 8  # copied into one draft: bounds the time of a proposal
MAX_ANSWER_TOKENS = 1024  # of one answer, what follows is not remembered

Place = tuple[int, int]
"""The number of an answer, and how many of its tokens (its question's mark first) come before."""


class StreamMemory:
    """The last answers of one stream. Not thread-safe."""

    def __init__(self, max_answers: int) -> None:
        self._max_answers = max_answers
        self._answers: OrderedDict[int, tuple[int, ...]] = OrderedDict()
        self._places: dict[tuple[int, ...], list[Place]] = {}
        self._num_learnt = 0

    def __len__(self) -> int:
        return len(self._answers)

    def learn(self, question: str, answer: Sequence[int]) -> None:
        """Remember an answer; the oldest goes when there are too many."""
        number, self._num_learnt = self._num_learnt, self._num_learnt + 1
        said = (_mark(question), *answer[:MAX_ANSWER_TOKENS])
        self._answers[number] = said
        for context, stop in _contexts(said):
            places = self._places.setdefault(context, [])
            places.append((number, stop))
            if len(places) > MAX_PLACES:
                del places[0]
        while len(self._answers) > self._max_answers:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        number, said = self._answers.popitem(last=False)
        for context, _ in _contexts(said):
            places = self._places.get(context)
            # Places are in the order of learning, so those of the oldest answer come first.
            if places and places[0][0] == number:
                del places[0]
                if not places:
                    del self._places[context]

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
            number, start = place
            said += self._answers[number][start : start + missing]
        return said[known:]

    def _best_place(self, said: list[int]) -> Place | None:
        for length in CONTEXT_LENGTHS:
            places = self._places.get(tuple(said[-length:])) if length <= len(said) else None
            if places:
                return max(reversed(places), key=lambda place: self._match(place, said))
        return None

    def _match(self, place: Place, said: list[int]) -> int:
        number, stop = place
        answer = self._answers[number]
        most = min(stop, len(said), MAX_MATCH)
        length = 0
        while length < most and answer[stop - 1 - length] == said[-1 - length]:
            length += 1
        return length


class Memory:
    """A `Drafter` over the memories of many streams. Not thread-safe, as the port allows.

    Streams not heard of for longest are forgotten first, so its size is bounded whatever comes:
    about 7 kB an answer of 50 tokens, so 0.9 GB with the limits as given and every stream full.
    """

    name = "memory"

    def __init__(self, max_answers: int = 512, max_streams: int = 256) -> None:
        if max_answers < 1 or max_streams < 1:
            raise DraftingError("a memory holds at least one answer of one stream: raise the limit")
        self._max_answers, self._max_streams = max_answers, max_streams
        self._streams: OrderedDict[StreamKey, StreamMemory] = OrderedDict()
        self._asks: dict[str, tuple[StreamKey, str]] = {}

    def __len__(self) -> int:
        """How many streams are remembered."""
        return len(self._streams)

    @property
    def num_answers(self) -> int:
        """How many answers are remembered, of all streams."""
        return sum(map(len, self._streams.values()))

    def begin(self, ask: Ask) -> None:
        """See `Drafter`."""
        if ask.remembered:
            self._asks[ask.request] = (ask.stream, ask.question)

    def propose(self, request: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """See `Drafter`."""
        key, question = self._asks.get(request, (None, ""))
        stream = self._streams.get(key) if key is not None else None
        return () if stream is None else stream.propose(question, confirmed, max_tokens)

    def finish(self, request: str, answer: Sequence[int]) -> None:
        """See `Drafter`."""
        key, question = self._asks.pop(request, (None, ""))
        if key is None or not answer:
            return
        stream = self._streams.setdefault(key, StreamMemory(self._max_answers))
        self._streams.move_to_end(key)
        stream.learn(question, answer)
        while len(self._streams) > self._max_streams:
            self._streams.popitem(last=False)

    def forget(self, stream: StreamKey) -> None:
        """Drop everything remembered of a stream."""
        self._streams.pop(stream, None)


def _mark(question: str) -> int:
    """A stand-in for the question before its answer's first token; no token id is negative."""
    return -1 - (hash(question) & 0x3FFFFFFF)


def _contexts(said: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Every context of a kept length that something follows, with where it ends."""
    return [
        (said[stop - length : stop], stop)
        for stop in range(1, len(said))
        for length in CONTEXT_LENGTHS
        if length <= stop
    ]
