"""How far drafts survive verification: the share of passes that accept at least i tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Self

from headstart.errors import PlanningError


@dataclass(frozen=True, slots=True)
class Survival:
    """S_1, S_2, ...: never rising, each between 0 and 1. Empty where nothing is drafted."""

    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if any(not 0.0 <= share <= 1.0 for share in self.shares):
            raise PlanningError(f"survival {self.shares} holds what is no share: give 0 to 1")
        if any(later > earlier + 1e-9 for earlier, later in pairwise(self.shares)):
            raise PlanningError(
                f"survival {self.shares} rises: a token counts only if all before it were accepted"
            )

    @classmethod
    def independent(cls, acceptance: float, draft_tokens: int) -> Self:
        """Each token accepted with the same chance, given that those before it were."""
        if not 0.0 <= acceptance <= 1.0:
            raise PlanningError(f"an acceptance of {acceptance}: give a share between 0 and 1")
        return cls(tuple(acceptance**place for place in range(1, draft_tokens + 1)))

    @classmethod
    def of_histogram(cls, histogram: Sequence[int]) -> Self:
        """From how many passes accepted exactly 0, 1, 2, ... tokens."""
        total = sum(histogram)
        if total == 0:
            return cls()
        return cls(tuple(sum(histogram[place:]) / total for place in range(1, len(histogram))))

    @property
    def tokens_per_pass(self) -> float:
        """Of a verifying pass: the accepted tokens and one of the target's own."""
        return 1.0 + sum(self.shares)

    def cut(self, draft_tokens: int) -> "Survival":
        """The same of drafts no longer than this."""
        return Survival(self.shares[: max(0, draft_tokens)])

    def passes_for(self, num_tokens: int) -> float:
        """Expected passes until this many tokens are out, drafting as well at each of them.

        Not ``num_tokens / tokens_per_pass``: the last pass yields more than is wanted of it.
        """
        chances = self.chances()

        @cache
        def passes(missing: int) -> float:
            if missing <= 0:
                return 0.0
            return 1.0 + sum(
                chance * passes(missing - 1 - accepted)
                for accepted, chance in enumerate(chances)
                if chance
            )

        for length in range(num_tokens):
            passes(length)  # from short to long: no deep recursion
        return passes(num_tokens)

    def chances(self) -> tuple[float, ...]:
        """Of exactly 0, 1, 2, ... accepted tokens."""
        steps = (1.0, *self.shares, 0.0)
        return tuple(steps[place] - steps[place + 1] for place in range(len(self.shares) + 1))
