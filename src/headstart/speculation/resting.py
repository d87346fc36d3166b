"""Requests for which no source is worth asking, and for how many passes none is asked.

What a source may earn hardly changes from one pass of an answer to the next, so neither does the
answer to whether it is worth asking. A batch in which nothing pays costs next to nothing that way.
"""

from collections.abc import Set

FIRST, LONGEST = 8, 32  # passes; a rest is twice as long as the one before


class Resting:
    """Counts passes. `wake` may be called from any thread, the rest from the engine's one."""

    def __init__(self) -> None:
        self._pass = 0
        self._until: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        """Of each request's last rest."""

    @property
    def now(self) -> Set[str]:
        """Those that rest in this pass."""
        return self._until.keys()

    def pass_begins(self) -> None:
        """Some have rested for long enough."""
        self._pass += 1
        for request_id in [name for name, end in list(self._until.items()) if end < self._pass]:
            self._until.pop(request_id, None)

    def rest(self, request_id: str) -> None:
        """Nothing was worth asking: leave it out for some passes."""
        length = min(LONGEST, 2 * self._lengths.get(request_id, FIRST // 2))
        self._lengths[request_id] = length
        self._until[request_id] = self._pass + length

    def wake(self, request_id: str) -> None:
        """Something new is there, or the request is over."""
        self._lengths.pop(request_id, None)
        self._until.pop(request_id, None)
