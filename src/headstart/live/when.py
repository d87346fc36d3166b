"""Which windows of a stream are asked about: every one, or those in which the scene changed."""

from collections import deque
from math import inf
from typing import Protocol

from headstart.errors import LiveError
from headstart.media.change import Activity
from headstart.media.events import Events

THRESHOLD = 0.05
"""Events a pixel; `python -m benchmarks.when_changed` shows what other thresholds miss and save."""
NUM_APART = 64
"""A window is asked a little after its end: so many arrivals are kept apart, as before or after."""
TAIL_US = 400_000
"""What moved so shortly before a window's end counts for the next one, too: it may be gone then."""
SECOND_US = 1_000_000


class When(Protocol):
    """Decides which windows are asked. One object for each stream; not thread-safe.

    A wrong guess costs a question that is not asked, or the time of one that is. It never changes
    an answer.
    """

    def note(self, time_us: int, events: Events | None) -> None:
        """A frame has arrived, with the events since the one before it; None without a sensor."""

    def is_wanted(self, start_us: int, stop_us: int) -> bool:
        """Whether the window of this time would be asked, by what is known now.

        It may turn from False to True as events come, and does not turn back until `asked`.
        """

    def asked(self, start_us: int, stop_us: int) -> None:
        """That window is asked: what it showed is what later scenes are compared with."""

    @property
    def urgency(self) -> float:
        """From 0 to 1, how much has changed since; the most urgent stream is fed first."""


class Always:
    """Every window."""

    def note(self, time_us: int, events: Events | None) -> None:
        pass

    def is_wanted(self, start_us: int, stop_us: int) -> bool:
        return True

    def asked(self, start_us: int, stop_us: int) -> None:
        pass

    @property
    def urgency(self) -> float:
        return 1.0


class WhenChanged:
    """Windows by whose end the scene has changed since the last one that was asked.

    Where nothing moves, an event camera reports nothing beyond its noise. What comes beyond the
    usual from the end of a window that was asked is added up, in events a pixel; from ``threshold``
    on, the next window is asked. On a moving camera that is nearly every window: there the scene
    does change.

    With ``floor_s``, a window is asked at least every so many seconds. The first window is always
    asked, and so is every window of a camera without events.
    """

    def __init__(self, floor_s: float | None = None, threshold: float = THRESHOLD) -> None:
        if floor_s is not None and not floor_s > 0:
            raise LiveError(f"a question at least every {floor_s:g} s: give a time above 0")
        if not threshold > 0:
            raise LiveError(f"a threshold of {threshold:g} events a pixel: give one above 0")
        self._floor_s, self._threshold = floor_s, threshold
        self._activity = Activity()
        self._last_us: int | None = None
        self._asked_us: int | None = None
        # What came since the last question: earlier arrivals together, the latest one by one.
        self._earlier = 0.0
        self._latest: deque[tuple[int, float]] = deque()

    def note(self, time_us: int, events: Events | None) -> None:
        last_us = self._last_us
        if last_us is not None and time_us <= last_us:
            return  # doubled or late: the time of its events has been counted
        self._last_us = time_us
        if events is None:
            self._latest.append((time_us, inf))  # anything may have changed
        elif last_us is not None:
            active = self._activity.of(events, (time_us - last_us) / SECOND_US)
            self._latest.append((time_us, active))
        if len(self._latest) > NUM_APART:
            self._earlier += self._latest.popleft()[1]

    def is_wanted(self, start_us: int, stop_us: int) -> bool:
        if self._asked_us is None:
            return True
        if self._floor_s is not None and stop_us - self._asked_us >= self._floor_s * SECOND_US:
            return True
        return self._changed_by(stop_us) >= self._threshold

    def asked(self, start_us: int, stop_us: int) -> None:
        self._asked_us = stop_us
        self._earlier = 0.0
        while self._latest and self._latest[0][0] < stop_us - TAIL_US:
            self._latest.popleft()

    @property
    def urgency(self) -> float:
        since = self._changed_by(inf)
        return 1.0 if since == inf else since / (since + self._threshold)

    def _changed_by(self, stop_us: float) -> float:
        """Events a pixel beyond the usual, since the last question."""
        # A copy, since others may ask for the urgency while a frame is noted.
        latest = tuple(self._latest)
        return self._earlier + sum(active for at_us, active in latest if at_us < stop_us)
