"""One drafter, measured on one workload, and the figures of it."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Self

import numpy as np

from headstart.speculation.drafter import Drafter, DraftRequest, LearningDrafter
from headstart_research.bench.percentiles import percentile
from headstart_research.bench.replay import DraftLimits, Replay, ReplayedAnswer, replay
from headstart_research.evaluation.contenders import Contender
from headstart_research.evaluation.resampling import (
    Interval,
    Tally,
    interval,
    interval_of_difference,
)
from headstart_research.evaluation.workload import HeldOutAnswer, Workload
from headstart_research.planning.survival import Survival

LIMITS = DraftLimits(first=64, later=32)


@dataclass(frozen=True)
class DraftTimes:
    """Milliseconds."""

    begin: list[float] = field(default_factory=list)
    """Of each request: to take it in, and to look at its clip."""
    propose: list[float] = field(default_factory=list)
    """Of each draft, empty ones too."""


class Timed:
    """A `Drafter` that hands everything on, and notes how long it took."""

    def __init__(self, drafter: Drafter, times: DraftTimes) -> None:
        self._drafter, self._times = drafter, times

    @property
    def name(self) -> str:
        return self._drafter.name

    def begin(self, request: DraftRequest) -> None:
        with _noted(self._times.begin):
            self._drafter.begin(request)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        with _noted(self._times.propose):
            return self._drafter.propose(request_id, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._drafter.finish(request_id, answer)

    def settle(self) -> None:
        """A camera leaves a drafter time to learn, so it is not timed."""
        if isinstance(self._drafter, LearningDrafter):
            self._drafter.settle()


@contextmanager
def _noted(times: list[float]) -> Iterator[None]:
    start_ns = time.perf_counter_ns()
    yield
    times.append((time.perf_counter_ns() - start_ns) / 1e6)


@dataclass(frozen=True, eq=False)
class Measured:
    """What became of a drafter's drafts, answer by answer."""

    name: str
    workload: Workload
    replay: Replay
    times: DraftTimes

    @classmethod
    def of(cls, contender: Contender, workload: Workload, advance: Callable[[int], None]) -> Self:
        """Replay the workload; ``advance`` is told how many answers more are done."""
        times = DraftTimes()
        answers: list[ReplayedAnswer] = []
        for stream in workload.streams:
            drafter = Timed(contender.build(stream), times)
            answers += replay([answer.logged for answer in stream], drafter, LIMITS).answers
            advance(len(stream))
        return cls(contender.name, workload, Replay(contender.name, tuple(answers)), times)

    @property
    def by_answer(self) -> Tally:
        """Tokens and passes of each answer."""
        answers = self.replay.answers
        return Tally(
            np.array([len(answer.tokens) for answer in answers]),
            np.array([len(answer.verdicts) for answer in answers]),
        )

    @property
    def by_stream(self) -> Tally:
        """Tokens and passes of each stream."""
        lengths = [len(stream) for stream in self.workload.streams]
        return self.by_answer.by(np.repeat(np.arange(len(lengths)), lengths))

    def where(self, chosen: Callable[[HeldOutAnswer], bool]) -> float | None:
        """Tokens a pass of some of the answers; None where there are none."""
        pairs = zip(self.workload.answers, self.replay.answers, strict=True)
        some = tuple(replayed for answer, replayed in pairs if chosen(answer))
        return Replay(self.name, some).tokens_per_pass if some else None

    def figures(self) -> dict[str, Any]:
        first, later = _survivals(self.replay.answers)
        return {
            "tokens_per_pass": _rounded(self.replay.tokens_per_pass),
            **_bounds("answers", interval(self.by_answer)),
            **_bounds("streams", interval(self.by_stream)),
            "first_block": _rounded(self.replay.first_block),
            "new_scenes": _rounded(self.where(lambda answer: answer.is_new_scene)),
            "first_clips": _rounded(self.where(lambda answer: answer.is_first)),
            **_percentiles("begin_ms", self.times.begin),
            **_percentiles("draft_ms", self.times.propose),
            "survival_first": [_rounded(share) for share in first.shares],
            "survival_later": [_rounded(share) for share in later.shares],
        }

    def over(self, other: "Measured") -> dict[str, Any]:
        """How many tokens a pass more than another drafter on the same answers."""
        return {"tokens_per_pass": _rounded(_more(self, other)), **_doubt([(self, other)])}


def mean_over(pairs: Sequence[tuple[Measured, Measured]]) -> dict[str, Any]:
    """How many tokens a pass the first of a pair has more, in the mean over pairs.

    All pairs are of the same answers: drafters that were trained with different seeds.
    """
    found = [_more(one, other) for one, other in pairs]
    return {**spread(found), **_doubt(pairs)}


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, lowest and highest."""
    bounds = {"mean": fmean(values), "lowest": min(values), "highest": max(values)}
    return {name: _rounded(value) for name, value in bounds.items()}


def _more(one: Measured, other: Measured) -> float:
    return one.replay.tokens_per_pass - other.replay.tokens_per_pass


def _doubt(pairs: Sequence[tuple[Measured, Measured]]) -> dict[str, float | None]:
    """Intervals of a difference, or of the mean of several, over answers and over streams."""
    answers = [(one.by_answer, other.by_answer) for one, other in pairs]
    streams = [(one.by_stream, other.by_stream) for one, other in pairs]
    return {
        **_bounds("answers", interval_of_difference(answers)),
        **_bounds("streams", interval_of_difference(streams)),
    }


def _survivals(answers: Iterable[ReplayedAnswer]) -> tuple[Survival, Survival]:
    """Of the drafts before the first token, and of the later ones."""
    first: list[tuple[int, bool]] = []
    later: list[tuple[int, bool]] = []
    for answer in answers:
        for verdict in answer.verdicts:
            left = len(answer.tokens) - verdict.draft.start
            seen = (verdict.num_accepted, verdict.num_accepted < left)
            (later if verdict.draft.start else first).append(seen)
    return Survival.of_passes(first), Survival.of_passes(later)


def _percentiles(name: str, milliseconds: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p{share}": round(percentile(milliseconds, share), 3) for share in (50, 95)}


def _bounds(over: str, found: Interval | None) -> dict[str, float | None]:
    low, high = (None, None) if found is None else (found.low, found.high)
    return {f"{over}_low": _rounded(low), f"{over}_high": _rounded(high)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
