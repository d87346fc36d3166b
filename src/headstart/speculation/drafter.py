"""The interface of a drafter, a source of drafts: what it is told and what it is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DraftingError


@dataclass(frozen=True, slots=True)
class StreamKey:
    """A camera's stream, and the tenant that owns it. Tenants share nothing."""

    tenant: str
    stream: str


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What drafters are told of a request to the target."""

    id: str
    stream: StreamKey
    question: str
    """Equal for equal questions: their text, or a digest of it."""
    prompt: tuple[int, ...] = ()
    """Text ids of the prompt's end, where they are known."""
    change: float = 0.0
    """How different the clip is from the stream's last one, from 0 (the same) to 1 (all new)."""
    remembered: bool = True
    """Whether its answer may draft later ones. False where the request belongs to no stream."""
    is_rehearsal: bool = False
    """Whether what it says is a draft itself: no source learns from it, or is judged by it."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.change <= 1.0:
            raise DraftingError(f"change is {self.change}: give a share between 0 and 1")


class Drafter(Protocol):
    """A source of drafts, for many requests at a time.

    The engine calls it from one thread, between two steps, so each call must return at once: a
    drafter that needs time drafts elsewhere, and its drafts are posted to the `Cascade`. A request
    that is not known (never begun, finished, evicted) is no error: it gets no draft, and finishing
    it does nothing.
    """

    @property
    def name(self) -> str:
        """The source of its drafts; unique in a cascade."""
        ...

    def begin(self, request: DraftRequest) -> None:
        """A request exists. May be called before its prompt is computed."""
        ...

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """How the answer may go on after ``confirmed``; empty where nothing is known.

        Does not change what the drafter knows, and does not keep ``confirmed``. The ids are
        unchecked: the board checks them.
        """
        ...

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        """The answer is complete: learn from it and forget the request.

        An aborted request is finished with an empty answer, from which nothing is learnt.
        """
        ...


@runtime_checkable
class LearningDrafter(Drafter, Protocol):
    """A drafter that learns in the background."""

    def settle(self) -> None:
        """Wait until all that was said has been learnt from; for measuring, never in an engine."""
        ...


@runtime_checkable
class RememberingDrafter(Drafter, Protocol):
    """A drafter that keeps what was said, until it is told to forget it."""

    def forget(self, stream: StreamKey) -> None:
        """Drop everything that was said on a stream."""
        ...

    def forget_tenant(self, tenant: str) -> None:
        """Drop everything that was said on any stream of a tenant."""
        ...

    def forget_before(self, time_s: float) -> None:
        """Drop what was said before a time, in seconds since 1970."""
        ...


@runtime_checkable
class PreparingDrafter(Drafter, Protocol):
    """A drafter that takes time, and can spend some of it while the target computes.

    Where a cascade does not ask it for a pass, it may ask it during the pass, only to judge it.
    """

    def prepare(self, request_id: str) -> None:
        """The target computes a pass of the request: get ready for the next draft.

        May be called in every pass, or never.
        """
        ...


Features = NDArray[np.float16]
"""What a vision tower made of a picture or of a clip: ``[tokens, size]``."""


@runtime_checkable
class SeeingDrafter(Drafter, Protocol):
    """A drafter that also looks at the clip of a request."""

    def see(self, request_id: str, features: Mapping[str, Features]) -> None:
        """What vision towers made of the clip, by name.

        Called after `begin`, also between two proposals: features come when a tower has computed
        them. Any of the names that `headstart collect` keeps may be missing, and the call too:
        then it drafts without them.
        """
        ...
