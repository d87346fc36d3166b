"""One request as a cascade sees it: its board, and the passes that sources were asked for."""

from collections.abc import Set
from dataclasses import dataclass, field
from threading import Lock

from headstart.speculation.board import DraftBoard
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import DraftRequest
from headstart.speculation.expectations import ExpectedSource

MAX_POSTERS = 8  # sources of posted drafts that are listened to, in one request
MAX_JUDGED_PASSES = 8  # of one answer, spread over it: bounds the time of finishing it


@dataclass(slots=True)
class AskedPass:
    """What the target was about to compute when sources were asked."""

    at: int
    """How many tokens of the answer were confirmed."""
    max_tokens: int
    when_s: float
    drafts: dict[str, Draft] = field(default_factory=dict)
    """Of the sources that were asked, before the budget cut them."""
    judged: set[str] = field(default_factory=set)
    """Sources whose drafts were judged before the answer was complete."""


@dataclass(slots=True, eq=False)
class DraftedRequest:
    """Whoever began it holds it until it is over. Only `post` may be called from any thread."""

    request: DraftRequest
    board: DraftBoard
    lock: Lock = field(default_factory=Lock)
    """Guards who posted, the order of sources that follows from it, and whether it is over."""
    is_over: bool = False
    posted_at_s: dict[str, float] = field(default_factory=dict)
    sources: dict[bool, list[ExpectedSource]] = field(default_factory=dict)
    """Before the first token, and after it: the sources in the order of asking."""
    num_rested: int = 0
    """Passes of its last rest, if nothing new has come since."""
    passes: list[AskedPass] = field(default_factory=list)
    """Some of them."""
    stride: int = 1
    num_passes: int = 0
    last_at: int = -1

    def post(self, draft: Draft, now_s: float) -> bool:
        """Put a draft on the board; returns whether its source is listened to."""
        with self.lock:
            if self.is_over:
                return False
            if draft.source not in self.posted_at_s:
                if len(self.posted_at_s) >= MAX_POSTERS:
                    return False
                self.posted_at_s[draft.source] = now_s
                self.sources.clear()
            self.board.post(draft)
        return True

    def end(self) -> bool:
        """No draft is taken from now on; returns whether that is new."""
        with self.lock:
            was_over, self.is_over = self.is_over, True
        return not was_over

    def note(self, asked: AskedPass) -> None:
        """Keep every first, second, fourth... pass, so that those kept span the answer."""
        if asked.at == self.last_at:  # nothing was said since it was asked last
            if self.passes[-1].at == asked.at:
                self.passes[-1] = asked
            return
        self.last_at = asked.at
        if self.num_passes % self.stride == 0:
            if len(self.passes) == MAX_JUDGED_PASSES:
                del self.passes[1::2]
                self.stride *= 2
            if self.num_passes % self.stride == 0:
                self.passes.append(asked)
        self.num_passes += 1

    def unheard(self, source: str) -> AskedPass | None:
        """The pass under way, if nothing like it shows yet how good the source is.

        A source is judged at one opening and at one later pass at least.
        """
        if not self.passes or self.passes[-1].at != self.last_at:
            return None
        under_way = self.passes[-1]
        is_opening = not under_way.at
        alike = (asked for asked in self.passes if (not asked.at) == is_opening)
        return None if any(source in asked.drafts for asked in alike) else under_way


FIRST, LONGEST = 8, 32  # passes; a rest is twice as long as the one before


class Resting:
    """Requests for which no source is worth asking, and for how many passes none is asked.

    What a source may earn hardly changes from one pass of an answer to the next, so neither does
    the answer to whether it is worth asking. A batch in which nothing pays costs next to nothing
    that way.

    Counts passes. `wake` may be called from any thread, the rest from the engine's one."""

    def __init__(self) -> None:
        self._pass = 0
        self._until: dict[DraftedRequest, int] = {}

    @property
    def now(self) -> Set[DraftedRequest]:
        """Those that rest in this pass."""
        return self._until.keys()

    def pass_begins(self) -> None:
        """Some have rested for long enough."""
        self._pass += 1
        for drafted in [one for one, end in list(self._until.items()) if end < self._pass]:
            self._until.pop(drafted, None)

    def rest(self, drafted: DraftedRequest) -> None:
        """Nothing was worth asking: leave it out for some passes."""
        drafted.num_rested = min(LONGEST, 2 * (drafted.num_rested or FIRST // 2))
        self._until[drafted] = self._pass + drafted.num_rested

    def wake(self, drafted: DraftedRequest) -> None:
        """Something new is there, or the request is over."""
        drafted.num_rested = 0
        self._until.pop(drafted, None)
