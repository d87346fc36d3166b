"""How fast the messages of one connection are read, whatever they are."""

import time
from collections.abc import Callable

from headstart_server.quota import Bucket
from headstart_server.settings import Limits

MESSAGES_A_FRAME = 4
"""Messages that are read for each frame of ``live_frames_per_minute``: a client also sends events,
acknowledgements and questions."""
COUNTED_BYTES = 256 << 10
"""A message counts once more for each so many bytes."""


class ReadingPace:
    """One second's worth of messages may be read at once. Used from one event loop only."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        per_minute = MESSAGES_A_FRAME * limits.live_frames_per_minute
        self._bucket = Bucket(per_minute, clock(), max(1.0, per_minute / 60))

    def wait_s(self) -> float:
        """How long until the next message may be read; 0 if it may be now."""
        return self._bucket.wait_s(1, self._clock())

    def count(self, num_bytes: int) -> None:
        """A message of this length was read."""
        self._bucket.take(1 + num_bytes // COUNTED_BYTES, self._clock())
