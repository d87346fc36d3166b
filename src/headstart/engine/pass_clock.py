"""Times the engine's decoding passes, from which the draft budget learns what a pass costs."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from vllm.v1.core.sched.output import SchedulerOutput


@dataclass(frozen=True, slots=True)
class TimedPass:
    """A pass that only decoded."""

    drafted_tokens: int
    seconds: float
    """From the scheduler's first look at the pass to the arrival of its tokens."""


class PassClock:
    """Times one pass at a time. Passes that overlap, or compute prompts, are not timed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s = 0.0
        self._timed: SchedulerOutput | None = None
        self._in_flight = 0

    def begin(self) -> None:
        """The scheduler begins to lay out a pass."""
        self._begun_s = self._clock()

    def laid_out(self, step: SchedulerOutput) -> None:
        """The pass goes to the workers."""
        self._in_flight += 1
        self._timed = step if self._in_flight == 1 else None

    def end(self, step: SchedulerOutput) -> TimedPass | None:
        """The pass is complete."""
        self._in_flight -= 1
        alone = id(self._timed) == id(step)
        self._timed = None
        if not alone or step.scheduled_new_reqs or not step.num_scheduled_tokens:
            return None
        drafted = sum(len(draft) for draft in step.scheduled_spec_decode_tokens.values())
        if step.total_num_scheduled_tokens != len(step.num_scheduled_tokens) + drafted:
            return None
        return TimedPass(drafted, self._clock() - self._begun_s)
