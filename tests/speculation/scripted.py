"""A drafter for tests: it knows the answer, and errs as often and as late as its script says.

The same script gives the same drafts, whatever is asked in between.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest

RUBBISH = (-1, -(2**40), 2**31, 2**63, 999_999_999)
"""Ids that are no text of any model."""


@dataclass(frozen=True, slots=True)
class Script:
    """How good the drafter is to look."""

    acceptance: float = 1.0
    """The chance of each token to be right, given that those before it were."""
    delay_s: float = 0.0
    """Nothing is drafted until this long after the request began."""
    corruption: float = 0.0
    """The share of drafts that are rubbish from their first id on."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, share in (("acceptance", self.acceptance), ("corruption", self.corruption)):
            if not 0.0 <= share <= 1.0:
                raise DraftingError(f"{name} is {share}: give a share between 0 and 1")
        if self.delay_s < 0:
            raise DraftingError(f"delay_s is {self.delay_s}: give seconds from the request's begin")


class Scripted:
    """A `Drafter` given the true answers, by request. Owns no clock but the one it is handed."""

    name = "scripted"

    def __init__(
        self,
        answers: Mapping[str, Sequence[int]],
        script: Script | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answers = answers
        self._script = script or Script()
        self._clock = clock
        self._begun_s: dict[str, float] = {}

    def begin(self, request: DraftRequest) -> None:
        self._begun_s[request.id] = self._clock()

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        begun_s, truth = self._begun_s.get(request_id), self._answers.get(request_id)
        if begun_s is None or truth is None or self._clock() - begun_s < self._script.delay_s:
            return ()
        chance = Random(f"{self._script.seed}/{request_id}/{len(confirmed)}")
        if chance.random() < self._script.corruption:
            return [chance.choice(RUBBISH) for _ in range(max_tokens)]
        draft = list(truth[len(confirmed) : len(confirmed) + max_tokens])
        for place, token in enumerate(draft):
            if chance.random() >= self._script.acceptance:
                draft[place] = token + 1 if token == 0 else token - 1
                break
        return draft

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._begun_s.pop(request_id, None)
