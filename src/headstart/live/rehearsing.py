"""When the windows of a standing question are rehearsed.

A rehearsal answers the question about the frames that have landed, and drafts the answer about the
whole window. The later it is the more it has seen, and one that has to be cut off says less. So the
first of a window begins as late as it can still end, by what such a rehearsal took before. From
then on each frame brings another, which the one before drafts: where nothing has changed that is a
single pass. Where rehearsals told nothing of late that the camera's memory did not know, a window
has one at most.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headstart.engine.rehearsed_words import Rehearsal
from headstart.engine.session import Session
from headstart.live.window_question import WindowQuestion
from headstart.live.windows import Window
from headstart.speculation.draft import num_agreeing

PATIENCE = 1.5
"""Times what a rehearsal takes, for its own to be sure to end."""
FADE = 0.8
"""Of what is known, with each further rehearsal or window."""
FIRST_GAIN = 8.0
"""Tokens that a rehearsal is expected to know beyond memory, before any has shown it."""
MIN_GAIN = 1.0
NUM_STILL = 2
"""Windows in a row with the same answer: the scene is still."""
MAX_SKIPPED = 16
"""Times that the engine had no time for a rehearsal: so many more it is not asked for one."""

_log = logging.getLogger("headstart")


@dataclass(frozen=True, slots=True)
class DueFrames:
    """When frames of a growing window are expected to land, on the monotonic clock."""

    next_s: float
    last_s: float


class RehearsalPace:
    """Decides by what rehearsals of one question took and were worth. No clock of its own."""

    def __init__(self) -> None:
        self._whole_s = self._later_s = 0.0
        self._gain = FIRST_GAIN
        self._num_still = 0
        self._last_answer: tuple[int, ...] = ()
        self._skipping = self._num_skipped = 0

    def is_time(self, now_s: float, due: DueFrames, *, feed_s: float, is_first: bool) -> bool:
        """Whether to rehearse now, all frames that have landed being computed.

        ``feed_s`` is how long the newest of them took to be computed.
        """
        if self._num_skipped < self._skipping:
            self._num_skipped += 1
            return False
        if now_s + self._later_s / 2 > due.next_s:
            return False  # the next frame would cut it off before its first word
        if due.next_s >= due.last_s:
            return is_first or self._is_worth_more
        if not self._is_worth_more:
            return False  # one will do, the last there can be
        return not is_first or due.last_s - due.next_s - feed_s < PATIENCE * self._whole_s

    @property
    def _is_worth_more(self) -> bool:
        """Than one rehearsal a window."""
        return self._gain >= MIN_GAIN and self._num_still < NUM_STILL

    def rehearsed(self, rehearsal: Rehearsal, *, is_first: bool) -> None:
        """A rehearsal has ended."""
        if not rehearsal.token_ids and not rehearsal.is_whole:
            self._skipping = min(MAX_SKIPPED, 2 * self._skipping or 1)
            self._num_skipped = 0
            return
        self._skipping = 0
        if is_first:
            self._whole_s = _learnt(self._whole_s, rehearsal)
        else:
            self._later_s = _learnt(self._later_s, rehearsal)

    def answered(self, answer: Sequence[int], rehearsed: Sequence[int]) -> None:
        """A window's answer is known, and what its last rehearsal had said; nothing without one."""
        answer = tuple(answer)
        known = num_agreeing(self._last_answer, answer)
        if rehearsed:
            gain = max(0, num_agreeing(rehearsed, answer) - known)
            self._gain = FADE * self._gain + (1.0 - FADE) * gain
        if answer == self._last_answer:
            self._num_still += 1
        elif self._num_still:
            self._num_still = 0
            self._gain = max(self._gain, MIN_GAIN)  # it moves again: more may be worth it
        self._last_answer = answer


def _learnt(before_s: float, rehearsal: Rehearsal) -> float:
    """What a rehearsal takes; one that was cut off would have taken longer."""
    taken_s = rehearsal.seconds if rehearsal.is_whole else max(before_s, rehearsal.seconds)
    return FADE * before_s + (1.0 - FADE) * taken_s if before_s else taken_s


class WindowRehearsals:
    """Of one standing question. Used from the engine's event loop."""

    def __init__(self, session: Session, asked: WindowQuestion) -> None:
        self._session, self._asked = session, asked
        self._pace = RehearsalPace()
        self._number = -1
        self._newest: tuple[int, ...] = ()
        self._task: asyncio.Task[None] | None = None

    def fed(self, window: Window, due: DueFrames) -> None:
        """All that has landed of a window is computed: rehearse it, if it is time to."""
        is_first = window.number != self._number
        now_s = time.monotonic()
        feed_s = now_s - window.landed_s
        if not self._pace.is_time(now_s, due, feed_s=feed_s, is_first=is_first):
            return
        if is_first:
            self._number, self._newest = window.number, ()
        self.ended()  # one that is still under way leaves its words to the next
        self._task = asyncio.create_task(self._rehearse(window, due.next_s, is_first))

    def ended(self) -> None:
        """The window has ended: nothing more is to be had from it."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def answered(self, number: int, answer: Sequence[int]) -> None:
        """What the target said of a window."""
        self._pace.answered(answer, self._newest if number == self._number else ())

    async def _rehearse(self, window: Window, until_s: float, is_first: bool) -> None:
        try:
            question = self._asked.about(self._session, replace(window, events=()))
            rehearsal = await self._session.target.rehearse(question, until_s)
        except Exception as error:
            # The question itself says what is wrong with it, or with the engine.
            _log.debug("a rehearsal failed: %s", str(error) or type(error).__name__)
            rehearsal = Rehearsal((), is_whole=False, seconds=0.0)
        self._pace.rehearsed(rehearsal, is_first=is_first)
        if window.number == self._number and rehearsal.token_ids:
            self._newest = rehearsal.token_ids
