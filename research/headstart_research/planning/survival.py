"""How much of a draft is accepted: the share of passes that accept at least 1, 2, ... tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Self

from headstart.errors import PlanningError


@dataclass(frozen=True, slots=True)
class Survival:
    """The share of passes that accept at least 1, 2, ... tokens; empty where nothing is drafted."""

    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if any(not 0.0 <= share <= 1.0 for share in self.shares):
            raise PlanningError(f"survival {self.shares} has values that are no share: give 0 to 1")
        if any(later > earlier + 1e-9 for earlier, later in pairwise(self.shares)):
            raise PlanningError(
                f"survival {self.shares} rises: a token counts only if all before it were accepted"
            )

    @classmethod
    def independent(cls, acceptance: float, draft_tokens: int) -> Self:
        """Every token is accepted with the same chance, given that those before it were."""
        if not 0.0 <= acceptance <= 1.0:
            raise PlanningError(f"an acceptance of {acceptance}: give a share between 0 and 1")
        return cls(tuple(acceptance**place for place in range(1, draft_tokens + 1)))

    @classmethod
    def of_passes(cls, passes: Sequence[tuple[int, bool]]) -> Self:
        """An estimate from how many tokens each pass accepted, and whether it could have more.

        A pass over the end of an answer could not accept more than was left of the answer. It
        counts only up to there (the product limit of Kaplan and Meier).
        """
        shares, share = [], 1.0
        for place in range(max((accepted for accepted, _ in passes), default=0)):
            tried = sum(n > place or (n == place and could) for n, could in passes)
            share *= sum(n > place for n, _ in passes) / tried
            shares.append(share)
        return cls(tuple(shares))

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a verifying pass yields: the accepted ones and one of the target's own."""
        return 1.0 + sum(self.shares)

    def passes_for(self, num_tokens: int) -> float:
        """The expected number of passes for this many tokens.

        It is more than ``num_tokens / tokens_per_pass``, since the last pass yields tokens that
        are not needed.
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
            passes(length)  # fills the cache from short to long, so that recursion stays shallow
        return passes(num_tokens)

    def chances(self) -> tuple[float, ...]:
        """The chances that a pass accepts exactly 0, 1, 2, ... tokens."""
        steps = (1.0, *self.shares, 0.0)
        return tuple(steps[place] - steps[place + 1] for place in range(len(self.shares) + 1))
