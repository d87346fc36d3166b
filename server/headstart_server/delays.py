"""How long a caller waits who has just had much of what costs the server, and counts nowhere."""

import time
from collections.abc import Callable

from headstart_server.quota import Bucket


class Delays:
    """Used from one event loop only."""

    def __init__(
        self,
        num_free: int,
        each_s: float,
        longest_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """So many at once wait for nothing, and one more after each such time.

        Nobody waits for longer than ``longest_s``, and none owes more than that.
        """
        self._num_free, self._each_s, self._longest_s = num_free, each_s, longest_s
        self._clock = clock
        self._of_caller: dict[str, Bucket] = {}
        """Of callers that are not forgotten yet; the one that was charged last is the last."""

    def __len__(self) -> int:
        return len(self._of_caller)

    def charge(self, caller: str, amount: int = 1) -> None:
        """The caller had one more, or one that counts as so many."""
        now_s = self._clock()
        self._forget(now_s)
        bucket = self._of_caller.pop(caller, None)
        if bucket is None:
            bucket = Bucket(60 / self._each_s, now_s, self._num_free)
        self._of_caller[caller] = bucket
        if (left_s := self._longest_s - bucket.wait_s(1, now_s)) > 0:
            bucket.take(min(amount, 1 + left_s / self._each_s), now_s)

    def wait_s(self, caller: str) -> float:
        """How long the caller's next is to wait."""
        bucket = self._of_caller.get(caller)
        return 0.0 if bucket is None else min(self._longest_s, bucket.wait_s(1, self._clock()))

    def _forget(self, now_s: float) -> None:
        """A full bucket is as good as none, so the table holds the newest offenders only."""
        while self._of_caller:
            oldest = next(iter(self._of_caller))
            if self._of_caller[oldest].wait_s(self._num_free, now_s):
                return
            del self._of_caller[oldest]
