"""Logged answers replayed through drafters, without any model.

The rules: answers come in the order they were given, and a drafter learns one only after it is
finished. A pass of the target verifies one draft greedily and yields what it accepted and one
token of its own. Tokens per pass is all tokens of the log over all passes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from math import ceil
from pathlib import Path

from headstart.drafters.memory import Memory
from headstart.drafters.registry import (
    DEFAULT_DRAFTERS,
    Ingredients,
    Registration,
    build_cascade,
    registration,
)
from headstart.errors import ReplayError
from headstart.speculation.board import TextVocabulary
from headstart.speculation.draft import Draft, Verdict
from headstart.speculation.drafted_request import DraftedRequest
from headstart.speculation.drafter import Drafter, DraftRequest, LearningDrafter, StreamKey
from headstart_research.bench.baselines import (
    FiveGram,
    PastOracle,
    PreviousAnswer,
    RawWords,
    RecentSuffix,
)
from headstart_research.bench.log import LoggedAnswer
from headstart_research.bridge.drafter import BridgeDrafter

ANY_ID = TextVocabulary(2**62)
AGES = (1, 2, 3, 6, 11, 21, 51, 101, 201)
"""Of a stream, in answers: here each stretch of ages begins."""


@dataclass(frozen=True, slots=True)
class DraftLimits:
    """How many tokens may be drafted at a time."""

    first: int = 64
    """Before the first token: verified in the last chunk of the prefill, beside far more."""
    later: int = 32

    def __post_init__(self) -> None:
        if self.first < 0 or self.later < 0:
            raise ReplayError("a draft has no fewer than 0 tokens: raise the limit")


@dataclass(frozen=True, slots=True)
class ReplayedAnswer:
    """One answer, and the verdict of each pass over it."""

    tokens: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    age: int = 1
    """How many answers its stream has with this one."""

    @property
    def was_accepted(self) -> list[bool]:
        """For each token whether it had been drafted."""
        passes = ([True] * verdict.num_accepted + [False] for verdict in self.verdicts)
        return list(chain.from_iterable(passes))[: len(self.tokens)]


@dataclass(frozen=True, slots=True)
class Replay:
    """One method over the whole log."""

    method: str
    answers: tuple[ReplayedAnswer, ...]
    cheats: bool = False
    """It knows what no drafter can: an upper bound, not a method."""

    def after(self, num_answers: int) -> "Replay":
        """The same without the first answers, which were there to learn from."""
        return replace(self, answers=self.answers[num_answers:])

    @property
    def tokens_per_pass(self) -> float:
        """All tokens over all passes."""
        return _tokens_per_pass(self.answers)

    @property
    def first_block(self) -> float:
        """Mean number of tokens accepted of the draft made before the first token."""
        return sum(a.verdicts[0].num_accepted for a in self.answers) / len(self.answers)

    def passes(self, share: float) -> int:
        """The number of passes that this share of the answers does not exceed."""
        counts = sorted(len(answer.verdicts) for answer in self.answers)
        return counts[max(0, ceil(share * len(counts)) - 1)]

    def by_time(self, num_parts: int) -> list[float]:
        """Tokens per pass in equal stretches of the log, the earliest first."""
        edges = [len(self.answers) * part // num_parts for part in range(num_parts + 1)]
        stretches = [self.answers[start:stop] for start, stop in pairwise(edges)]
        return [_tokens_per_pass(stretch) for stretch in stretches if stretch]

    def by_age(self) -> dict[str, float]:
        """Tokens per pass of the first, the second, the third to fifth... answers of streams."""
        figures = {}
        for first, beyond in pairwise((*AGES, max(a.age for a in self.answers) + 1)):
            young = [answer for answer in self.answers if first <= answer.age < beyond]
            if young:
                name = f"{first}" if beyond - first == 1 else f"{first}-{beyond - 1}"
                figures[name] = _tokens_per_pass(young)
        return figures

    def by_position(self, width: int) -> list[float]:
        """The share of tokens that had been drafted, in stretches of ``width`` of the answer."""
        hits: list[int] = []
        totals: list[int] = []
        for answer in self.answers:
            for place, accepted in enumerate(answer.was_accepted):
                if place // width == len(totals):
                    hits.append(0)
                    totals.append(0)
                hits[place // width] += accepted
                totals[place // width] += 1
        return [hit / total for hit, total in zip(hits, totals, strict=True)]

    def summary(self) -> dict[str, float | int | dict[str, float]]:
        """The figures of the last line of JSON."""
        return {
            "tokens_per_pass": round(self.tokens_per_pass, 3),
            "first_block": round(self.first_block, 3),
            "passes_p50": self.passes(0.5),
            "passes_p95": self.passes(0.95),
            "by_age": {age: round(value, 3) for age, value in self.by_age().items()},
        }


class OwnMemory(Memory):
    """Memory that is not warm: a stream quotes nothing but its own answers."""

    name = "memory, own stream only"

    def __init__(self) -> None:
        super().__init__(warm=False)


class DrafterWords:
    """A `Drafter`: a cascade, on whose boards the logged words of another model are posted at once.

    The best case for a drafter beside the target: it is done before the first pass.
    """

    name = "memory + drafter's words"

    def __init__(self, words: dict[str, tuple[int, ...]]) -> None:
        self._cascade = build_cascade(DEFAULT_DRAFTERS, ANY_ID)
        self._words = words
        self._requests: dict[str, DraftedRequest] = {}

    def begin(self, request: DraftRequest) -> None:
        drafted = self._requests[request.id] = self._cascade.begin(request)
        if words := self._words.get(request.id):
            self._cascade.post(drafted, Draft(words, "drafter", made_at_s=0.0))

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        drafted = self._requests.get(request_id)
        if drafted is None:
            return ()
        return self._cascade.propose(drafted, confirmed, max_tokens).tokens

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        drafted = self._requests.pop(request_id, None)
        if drafted is not None:
            self._cascade.finish(drafted, answer)


def replay(log: Iterable[LoggedAnswer], drafter: Drafter, limits: DraftLimits) -> Replay:
    """Run one drafter over a log; it learns an answer only when that is complete."""
    replayed = []
    ages: Counter[StreamKey] = Counter()
    for answer in log:
        request, tokens = answer.request, answer.tokens
        ages[request.stream] += 1
        drafter.begin(request)
        verdicts: list[Verdict] = []
        num_said = 0
        while num_said < len(tokens):
            limit = limits.later if verdicts else limits.first
            drafted = tuple(drafter.propose(request.id, tokens[:num_said], limit))[:limit]
            draft = Draft(drafted, drafter.name, 0.0, num_said)
            verdicts.append(Verdict.greedy(draft, tokens[num_said:]))
            num_said += verdicts[-1].num_accepted + 1
        drafter.finish(request.id, tokens)
        if isinstance(drafter, LearningDrafter):
            drafter.settle()  # a log is replayed faster than answers are given
        replayed.append(ReplayedAnswer(tokens, tuple(verdicts), ages[request.stream]))
    return Replay(drafter.name, tuple(replayed), isinstance(drafter, PastOracle))


def methods(
    log: Sequence[LoggedAnswer], more: Sequence[str] = (), bridge: Path | None = None
) -> list[Callable[[], Drafter]]:
    """Makers of all drafters of the table: baselines, the default ones, ``more``, an upper bound.

    Those of ``more`` are named as in the registry; ``bridge`` is the directory of one.
    """
    said = {row.request.id: row.tokens for row in log}
    words = {row.request.id: row.drafted for row in log if row.drafted}
    with_words: list[Callable[[], Drafter]] = []
    if words:
        with_words = [lambda: RawWords(words), lambda: DrafterWords(words)]
    names = dict.fromkeys((*DEFAULT_DRAFTERS, *more))
    registered = [registration(name) for name in names]
    streams = {row.request.stream for row in log}
    tenants = {stream.tenant for stream in streams}
    own: list[Callable[[], Drafter]] = [OwnMemory] if len(streams) > len(tenants) else []
    return [
        *with_words[:1],
        PreviousAnswer,
        FiveGram,
        RecentSuffix,
        *own,
        *(partial(_new, row) for row in registered),
        *([] if bridge is None else [lambda: BridgeDrafter.load(bridge, Memory())]),
        *with_words[1:],
        lambda: PastOracle(said),
    ]


def _new(row: Registration) -> Drafter:
    return row.built(Ingredients())


def _tokens_per_pass(answers: Sequence[ReplayedAnswer]) -> float:
    num_tokens = sum(len(answer.tokens) for answer in answers)
    return num_tokens / sum(len(answer.verdicts) for answer in answers)
