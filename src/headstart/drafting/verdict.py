"""What the target said to a draft, in vLLM's words: accepted, recovered, bonus."""

from collections.abc import Sequence
from dataclasses import dataclass


def num_agreeing(drafted: Sequence[int], said: Sequence[int]) -> int:
    """How many tokens both begin with."""
    count = 0
    for ours, theirs in zip(drafted, said, strict=False):
        if ours != theirs:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Verdict:
    """One pass of the target over one draft.

    A pass yields the accepted tokens and one of the target's own: the ``recovered`` one in place
    of the first rejected, or a ``bonus`` after a draft accepted whole. Neither where the answer
    ended inside the accepted tokens.
    """

    num_drafted: int
    accepted: tuple[int, ...]
    recovered: int | None = None
    bonus: int | None = None

    @classmethod
    def greedy(cls, drafted: Sequence[int], said: Sequence[int]) -> "Verdict":
        """The verdict on ``drafted`` by a target whose answer goes on with ``said``."""
        count = num_agreeing(drafted, said)
        own = said[count] if count < len(said) else None
        accepted = tuple(said[:count])
        if count < len(drafted):
            return cls(len(drafted), accepted, recovered=own)
        return cls(len(drafted), accepted, bonus=own)

    @property
    def tokens(self) -> tuple[int, ...]:
        """What the pass added to the answer."""
        own = self.recovered if self.recovered is not None else self.bonus
        return self.accepted if own is None else (*self.accepted, own)
