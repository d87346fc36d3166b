"""A draft: tokens that a source expects the target to say. The target decides."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """What ``source`` expects the answer to be from its token ``start`` on.

    A draft may be late, wrong or hostile; it is checked on the `DraftBoard`, not here.
    """

    tokens: tuple[int, ...]
    source: str
    made_at_s: float
    """On the monotonic clock that all processes of the machine share."""
    start: int = 0
    """How many tokens of the answer come before the draft's first one."""
    match: int = 0
    """By how many of these, the last ones, it was found; 0 where nothing was looked up."""

    @property
    def stop(self) -> int:
        """How many tokens of the answer come before the draft's end."""
        return self.start + len(self.tokens)


NOTHING = Draft((), "", 0.0)
"""The draft where no source has one."""
