"""Logged answers replayed through drafters, without any model.

The rules: answers come in the order they were given, and a drafter learns one only after it is
finished. A pass of the target verifies one draft greedily and yields what it accepted and one
token of its own. Tokens per pass is all tokens of the log over all passes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from headstart.bench.baselines import FiveGram, PastOracle, PreviousAnswer, RawWords, RecentSuffix
from headstart.bench.log import LoggedAnswer
from headstart.drafters.cascade import Cascade
from headstart.drafters.memory import Memory
from headstart.drafters.ngram import Ngram
from headstart.drafters.port import Ask, Drafter
from headstart.drafting.draft import Draft
from headstart.drafting.verdict import Verdict
from headstart.drafting.vocabulary import TextVocabulary
from headstart.errors import ReplayError

ANY_ID = TextVocabulary(2**62)


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
    """What became of one answer."""

    verdicts: tuple[Verdict, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """The answer, put together from the verdicts."""
        return tuple(token for verdict in self.verdicts for token in verdict.tokens)

    @property
    def was_accepted(self) -> list[bool]:
        """For each token whether it had been drafted."""
        return [
            place < len(verdict.accepted)
            for verdict in self.verdicts
            for place in range(len(verdict.tokens))
        ]


@dataclass(frozen=True, slots=True)
class Replay:
    """One method over the whole log."""

    method: str
    answers: tuple[ReplayedAnswer, ...]
    cheats: bool = False
    """It knows what no drafter can: an upper bound, not a method."""

    @property
    def tokens_per_pass(self) -> float:
        """All tokens over all passes."""
        return _tokens_per_pass(self.answers)

    @property
    def first_block(self) -> float:
        """Mean number of tokens accepted of the draft made before the first token."""
        return sum(len(a.verdicts[0].accepted) for a in self.answers) / len(self.answers)

    def passes(self, share: float) -> int:
        """The number of passes that this share of the answers does not exceed."""
        counts = sorted(len(answer.verdicts) for answer in self.answers)
        return counts[max(0, ceil(share * len(counts)) - 1)]

    def by_time(self, num_parts: int) -> list[float]:
        """Tokens per pass in equal stretches of the log, the earliest first."""
        edges = [len(self.answers) * part // num_parts for part in range(num_parts + 1)]
        stretches = [self.answers[start:stop] for start, stop in pairwise(edges)]
        return [_tokens_per_pass(stretch) for stretch in stretches if stretch]

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

    def summary(self) -> dict[str, float | int]:
        """The figures of the last line of JSON."""
        return {
            "tokens_per_pass": round(self.tokens_per_pass, 3),
            "first_block": round(self.first_block, 3),
            "passes_p50": self.passes(0.5),
            "passes_p95": self.passes(0.95),
        }


class WithWords:
    """A `Drafter`: a cascade on whose boards the logged words stand from the beginning.

    The best case for a drafter beside the target: it is done before the first pass.
    """

    def __init__(self, name: str, cascade: Cascade, words: dict[str, tuple[int, ...]]) -> None:
        self.name = name
        self._cascade = cascade
        self._words = words

    def begin(self, ask: Ask) -> None:
        """See `Drafter`."""
        self._cascade.begin(ask)
        if words := self._words.get(ask.request):
            self._cascade.post(ask.request, Draft(words, "drafter", made_at_s=0.0))

    def propose(self, request: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """See `Drafter`."""
        return self._cascade.propose(request, confirmed, max_tokens).tokens

    def finish(self, request: str, answer: Sequence[int]) -> None:
        """See `Drafter`."""
        self._cascade.finish(request, answer)


def replay(log: Iterable[LoggedAnswer], drafter: Drafter, limits: DraftLimits) -> Replay:
    """Run one drafter over a log; it is told of an answer's end only when it is there."""
    replayed = []
    for answer in log:
        request, tokens = answer.ask.request, answer.tokens
        drafter.begin(answer.ask)
        verdicts: list[Verdict] = []
        confirmed: tuple[int, ...] = ()
        while len(confirmed) < len(tokens):
            limit = limits.later if verdicts else limits.first
            draft = tuple(drafter.propose(request, confirmed, limit))[:limit]
            verdict = Verdict.greedy(draft, tokens[len(confirmed) :])
            verdicts.append(verdict)
            confirmed += verdict.tokens
        drafter.finish(request, tokens)
        replayed.append(ReplayedAnswer(tuple(verdicts)))
    return Replay(drafter.name, tuple(replayed), isinstance(drafter, PastOracle))


def methods(log: Sequence[LoggedAnswer]) -> list[Callable[[], Drafter]]:
    """Makers of all drafters of the table: the blind ones first, the one that cheats last."""
    said = {row.ask.request: row.tokens for row in log}
    words = {row.ask.request: row.drafted for row in log if row.drafted}

    def remembering_and_seeing() -> Drafter:
        cascade = Cascade([Memory(), Ngram()], ANY_ID)
        return WithWords("memory + drafter's words", cascade, words)

    seeing: list[Callable[[], Drafter]] = [lambda: RawWords(words)] if words else []
    both: list[Callable[[], Drafter]] = [remembering_and_seeing] if words else []
    return [
        *seeing,
        PreviousAnswer,
        FiveGram,
        RecentSuffix,
        Ngram,
        Memory,
        *both,
        lambda: PastOracle(said),
    ]


def _tokens_per_pass(answers: Sequence[ReplayedAnswer]) -> float:
    num_tokens = sum(len(answer.tokens) for answer in answers)
    return num_tokens / sum(len(answer.verdicts) for answer in answers)
