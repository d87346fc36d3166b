"""What became of one draft that was handed to the target."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fate:
    """One draft, verified in one pass of the target."""

    source: str
    start: int
    """How many tokens of the answer stood before it."""
    tokens: tuple[int, ...]
    made_at_s: float
    """On the monotonic clock that all processes of the machine share."""
    num_accepted: int
    """So many of its first tokens are the answer's own."""
