"""A draft: words somebody expects of the target. A hint, with no authority over the answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """What ``source`` expects the answer to be from its token ``start`` on.

    Nothing is checked here: a draft may be late, wrong or hostile. The board checks.
    """

    tokens: tuple[int, ...]
    source: str
    made_at_s: float
    """On the monotonic clock that all processes of the machine share."""
    start: int = 0
    """How many tokens of the answer stand before the first one of the draft."""
