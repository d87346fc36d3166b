"""An answer as a client of the live socket gets it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class LiveAnswer:
    """What the target said about a window, and how long after its last frame."""

    start_us: int
    """The window's, on the camera's clock."""
    stop_us: int
    num_frames: int
    text: str
    finish_reason: str
    first_token_s: float
    """From the last frame's arrival at the server to the first token."""
    wait_s: float
    """And to the last word."""
    num_passes: int
    num_tokens: int
    accepted: int
    """Tokens that were drafted before the target said them."""
    number: int = 0
    """Answers to the standing question are counted from 1; 0 for another question."""

    @classmethod
    def parse(cls, message: Mapping[str, Any]) -> "LiveAnswer":
        """Of the server's message; fields that this version does not know are left out."""
        known = [field.name for field in fields(cls)]
        return cls(**{name: message[name] for name in known if name in message})
