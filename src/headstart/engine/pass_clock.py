"""How long passes of the engine take, where that can be told: the planner's only measurement."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from vllm.v1.core.sched.output import SchedulerOutput


@dataclass(frozen=True, slots=True)
class TimedPass:
    """A pass that only decoded."""

    drafted_tokens: int
    seconds: float
    """From the question what to draft to the answer what was said."""


class PassClock:
    """Times one pass at a time; overlapping ones, and those with prompts in them, are left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s = 0.0
        self._timed: SchedulerOutput | None = None
        self._in_flight = 0

    def begin(self) -> None:
        """The scheduler turns to the next pass."""
        self._begun_s = self._clock()

    def laid_out(self, step: SchedulerOutput) -> None:
        """It leaves for the workers."""
        self._in_flight += 1
        self._timed = step if self._in_flight == 1 else None

    def end(self, step: SchedulerOutput) -> TimedPass | None:
        """It is back."""
        self._in_flight -= 1
        alone = id(self._timed) == id(step)
        self._timed = None
        if not alone or step.scheduled_new_reqs or not step.num_scheduled_tokens:
            return None
        drafted = sum(len(draft) for draft in step.scheduled_spec_decode_tokens.values())
        if step.total_num_scheduled_tokens != len(step.num_scheduled_tokens) + drafted:
            return None
        return TimedPass(drafted, self._clock() - self._begun_s)
