"""What a bridge learns from: answers in the order in which a camera may have asked for them.

Records hold several questions about each clip. A camera asks one of them again and again, or all in
turn, or all about every clip; what a bridge can quote, and what memory suggests, depends on that.
Each example draws such an order anew, and draws which features are shown, so that one bridge serves
every camera with or without an event model beside it.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random

import numpy as np
from numpy.typing import NDArray

from headstart.drafters.stream_memory import StreamMemory, quote
from headstart.drafters.tenant_memory import MAX_SITE_ANSWERS
from headstart.errors import TrainingError
from headstart_research.bridge.context import EarlierAnswer
from headstart_research.bridge.vocabulary import DraftVocabulary
from headstart_research.collect.record import Record

NUM_SITES = 4
"""Streams are dealt to so many sites. A stream's warm memory is that of the other sites."""
HELD_OUT_SHARE = 0.06
"""Of the streams, kept back: for the curve, and to calibrate the bridge's confidence."""
MAX_REMEMBERED = 32  # answers of the stream itself, for memory's suggestions


class Order(Enum):
    """In which order a camera asked."""

    ONE = "one question"
    TURN = "questions in turn"
    ALL = "all questions about every clip"


@dataclass(frozen=True, eq=False, slots=True)
class Told:
    """One answer of the target."""

    question: str
    prompt: tuple[int, ...]
    """Text of the prompt's end."""
    answer: tuple[int, ...]
    own_ids: NDArray[np.int32]
    features: Mapping[str, NDArray[np.float16]]


@dataclass(frozen=True, eq=False)
class ToldStream:
    """All answers on one stream, oldest first."""

    name: str
    told: tuple[Told, ...]
    questions: tuple[str, ...]
    clips: tuple[int, ...]
    """Of each answer, how often its question had been asked before."""
    found: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """Its place by clip and question."""

    @classmethod
    def of(cls, name: str, told: Sequence[Told]) -> "ToldStream":
        """Of the answers in their order."""
        asked: Counter[str] = Counter()
        clips: list[int] = []
        found: dict[tuple[int, str], int] = {}
        for place, one in enumerate(told):
            clips.append(asked[one.question])
            found[asked[one.question], one.question] = place
            asked[one.question] += 1
        return cls(name, tuple(told), tuple(asked), tuple(clips), found)

    @property
    def bucket(self) -> int:
        """A number that depends on the name alone, for dealing streams out."""
        return int.from_bytes(hashlib.blake2b(self.name.encode(), digest_size=4).digest())

    def before(self, place: int, order: Order) -> list[Told]:
        """What had been answered before an answer, had the camera asked in this order."""
        if order is Order.ALL or len(self.questions) == 1:
            return list(self.told[:place])
        clip, question = self.clips[place], self.told[place].question
        number, count = self.questions.index(question), len(self.questions)
        turn = order is Order.TURN
        asked = (
            (earlier, self.questions[(number - (clip - earlier)) % count] if turn else question)
            for earlier in range(clip)
        )
        return [self.told[self.found[key]] for key in asked if key in self.found]


@dataclass(frozen=True, eq=False, slots=True)
class Example:
    """One answer, with all that a bridge would know of when it drafts it."""

    told: Told
    history: list[EarlierAnswer]
    suggested: NDArray[np.int32]
    """Own ids, before each token of the answer; the size of the vocabulary where nothing is."""
    matches: NDArray[np.int32]
    features: tuple[str, ...]


class BridgeData:
    """Streams to learn from, and streams kept back. The same draws for the same seed and step."""

    def __init__(
        self, records: Iterable[Record], vocabulary: DraftVocabulary, features: Sequence[str]
    ) -> None:
        """``features`` are the names of those that the bridge can look at."""
        self.vocabulary = vocabulary
        self._kinds = sorted({kind_of_feature(name) for name in features})
        self._features = tuple(features)
        streams = _streams(records, vocabulary)
        if not streams:
            raise TrainingError("the records hold no answer: collect some first")
        edge = HELD_OUT_SHARE * 2**32
        self.held_out = [stream for stream in streams if stream.bucket < edge]
        self.learnt = [stream for stream in streams if stream.bucket >= edge]
        if not self.held_out or not self.learnt:
            # Of very few streams one is kept back all the same.
            streams = sorted(streams, key=lambda stream: stream.bucket)
            self.held_out, self.learnt = streams[:1], streams[1:] or streams
        self._sites = [
            _site(stream for stream in self.learnt if stream.bucket % NUM_SITES != number)
            for number in range(NUM_SITES)
        ]
        self._places = [
            (stream, place) for stream in self.learnt for place in range(len(stream.told))
        ]

    def batch(self, step: int, seed: int, size: int) -> list[Example]:
        draw = Random(f"{seed}/{step}")
        return [self._drawn(*draw.choice(self._places), draw) for _ in range(size)]

    def examined(self, size: int, features: Sequence[str]) -> list[Example]:
        """The same held-out answers each time, looked at with these features."""
        draw = Random(0)
        places = [(stream, place) for stream in self.held_out for place in range(len(stream.told))]
        chosen = [draw.choice(places) for _ in range(size)]
        return [
            self.example(stream, place, draw.choice(list(Order)), draw.random() < 0.5, features)
            for stream, place in chosen
        ]

    def example(
        self, stream: ToldStream, place: int, order: Order, warm: bool, features: Sequence[str]
    ) -> Example:
        """An answer as a bridge would meet it."""
        told, before = stream.told[place], stream.before(place, order)
        own = StreamMemory(MAX_REMEMBERED)
        for earlier in before[-MAX_REMEMBERED:]:
            own.learn(earlier.question, earlier.answer)
        memories = [own, self._sites[stream.bucket % NUM_SITES]] if warm else [own]
        suggested, matches = _suggestions(memories, told, self.vocabulary)
        return Example(
            told,
            [EarlierAnswer(earlier.question, earlier.own_ids) for earlier in before],
            suggested,
            matches,
            tuple(name for name in self._features if name in features and name in told.features),
        )

    def _drawn(self, stream: ToldStream, place: int, draw: Random) -> Example:
        kinds = {kind for kind in self._kinds if draw.random() < 0.6}
        features = [name for name in self._features if kind_of_feature(name) in kinds]
        order = draw.choice(list(Order))
        return self.example(stream, place, order, draw.random() < 0.5, features)


def kind_of_feature(name: str) -> str:
    """Whose eyes it is of: features of one model come together, or not at all."""
    return name.partition("_")[0]


def _streams(records: Iterable[Record], vocabulary: DraftVocabulary) -> list[ToldStream]:
    by_stream: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_stream[record.stream].append(record)
    # An answer from a log has no prompt; that of the same question elsewhere is as good.
    prompts: dict[str, tuple[int, ...]] = {}
    for of_stream in by_stream.values():
        for record in of_stream:
            if record.prompt_ids and record.question not in prompts:
                prompts[record.question] = record.prompt_end
    streams = []
    for name, of_stream in sorted(by_stream.items()):
        ordered = sorted(of_stream, key=lambda record: record.index)
        told = [
            Told(
                record.question,
                prompts.get(record.question, ()),
                record.answer_ids,
                vocabulary.own(record.answer_ids),
                {name: seen for name, seen in record.features.items() if len(seen)},
            )
            for record in ordered
        ]
        streams.append(ToldStream.of(name, told))
    return streams


def _site(streams: Iterable[ToldStream]) -> StreamMemory:
    """A memory of answers of several streams, dealt out evenly."""
    told = [one for stream in streams for one in stream.told]
    Random(0).shuffle(told)
    site = StreamMemory(MAX_SITE_ANSWERS)
    for one in told[:MAX_SITE_ANSWERS]:
        site.learn(one.question, one.answer)
    return site


def _suggestions(
    memories: Sequence[StreamMemory], told: Told, vocabulary: DraftVocabulary
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    size = len(told.answer)
    suggested = np.full(size, len(vocabulary), np.int32)
    matches = np.zeros(size, np.int32)
    found = [quote(memories, told.question, told.answer[:place], 1) for place in range(size)]
    said = [tokens[0] if tokens else -1 for tokens in found]
    suggested[:] = np.minimum(vocabulary.own(said), len(vocabulary))
    matches[:] = [tokens.match if tokens else 0 for tokens in found]
    return suggested, matches
