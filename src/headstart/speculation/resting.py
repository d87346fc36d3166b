"""Requests for which no source is worth asking, and for how many passes none is asked.

What a source may earn hardly changes from one pass of an answer to the next, so neither does the
answer to whether it is worth asking. A batch in which nothing pays costs next to nothing that way.
"""

from collections.abc import Set

from headstart.speculation.drafted_request import DraftedRequest

FIRST, LONGEST = 8, 32  # passes; a rest is twice as long as the one before


class Resting:
    """Counts passes. `wake` may be called from any thread, the rest from the engine's one."""

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
