"""The port of every source of drafts: what it is told, and what it is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headstart.errors import DraftingError


@dataclass(frozen=True, slots=True)
class StreamKey:
    """Whose camera, and which. Nothing remembered crosses from one key to another."""

    tenant: str
    stream: str


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as far as drafters may know it."""

    request: str
    stream: StreamKey
    question: str
    """Equal for equal questions: their text, or a digest of it."""
    prompt: tuple[int, ...] = ()
    """Text ids of the prompt, where they are known."""
    change: float = 0.0
    """How different the clip is from the stream's last one, from 0 (the same) to 1 (all new)."""
    remembered: bool = True
    """Whether its answer may draft others: false where it belongs to no camera's stream."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.change <= 1.0:
            raise DraftingError(f"change is {self.change}: give a share between 0 and 1")


class Drafter(Protocol):
    """A source of drafts, for many requests at a time.

    Calls come from one thread, the engine's, and must return at once: whoever needs time to
    draft does it elsewhere. A request that is not known (never begun, finished, evicted) is no
    error: it gets no draft, and finishing it does nothing.
    """

    @property
    def name(self) -> str:
        """What its drafts are signed with; one name, one drafter in a cascade."""
        ...

    def begin(self, ask: Ask) -> None:
        """A request exists. May be called before its prompt is computed."""
        ...

    def propose(self, request: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """How the answer may go on after ``confirmed``; empty where nothing is known.

        Does not change what the drafter knows, and does not keep ``confirmed``. The ids are
        unchecked: only a board turns them into a proposal.
        """
        ...

    def finish(self, request: str, answer: Sequence[int]) -> None:
        """The answer is complete: learn from it and forget the request.

        An aborted request is finished with an empty answer, from which nothing is learnt.
        """
        ...
