"""Times a drafter's work while answers are replayed."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from headstart.speculation.drafter import Drafter, DraftRequest, LearningDrafter


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
