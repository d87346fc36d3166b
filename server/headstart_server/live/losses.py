"""What may be missing of a camera's pictures and events on their way into windows, and why."""

from dataclasses import dataclass
from enum import StrEnum


class Why(StrEnum):
    """Why a window was lost."""

    FLOOD = "flood"
    """Pictures came faster than they are decoded, or than the limit, or windows than the clock."""
    RATE = "rate"
    """The tenant's requests or tokens a minute were used up."""
    MEMORY = "memory"
    """The tenant's media, or all, held too much memory."""
    UNREADABLE = "unreadable"
    """A picture or events of it could not be read."""
    KEY = "key"
    """An encoded picture came without the key picture that it builds on."""


@dataclass(frozen=True)
class Loss:
    """In place of what was lost, in the queue of what waits."""

    time_us: int


@dataclass(frozen=True)
class Cut:
    """In place of pictures that may be missing, whose windows are not known."""


@dataclass(frozen=True)
class Gap:
    """In place of events that did not fit: the next picture lacks them."""
