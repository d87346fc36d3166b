"""An engine as a process of SimPy: it computes while there is something to do, dies, and starts."""

from collections.abc import Callable, Generator
from random import Random
from typing import Any

import simpy

from headstart_research.planning.engine_model import Asked, EngineModel, Questions

Steps = Generator[simpy.Event, Any, None]


class SimulatedEngine:
    """An `EngineModel` on a clock, with the cameras that it has taken."""

    def __init__(
        self,
        clock: simpy.Environment,
        questions: Questions,
        random: Random,
        answered: Callable[[Asked], None],
    ) -> None:
        """``answered`` is called for every complete answer."""
        self.cameras: set[int] = set()
        self.stranded: list[Asked] = []
        """Windows that wait for the death of this engine to be noticed."""
        self._clock, self._questions, self._random = clock, questions, random
        self._answered = answered
        self._woken: simpy.Event | None = None
        self.start()

    def start(self) -> None:
        """Begin anew, with nothing known and nothing cached."""
        self.is_alive = True
        self.model = EngineModel(self._questions, self._random)
        self._process = self._clock.process(self._steps())

    def die(self) -> None:
        self.is_alive, self._woken = False, None
        self._process.interrupt()
        self.cameras.clear()
        self.stranded = self.model.unanswered()
        for asked in self.stranded:
            asked.is_retried = True

    def wake(self) -> None:
        if self._woken is not None and not self._woken.triggered:
            self._woken.succeed()

    def _steps(self) -> Steps:
        try:
            while True:
                work = self.model.work(self._clock.now)
                if work is None:
                    yield from self._idle()
                    continue
                yield self._clock.timeout(work.seconds)
                for asked in work.ended:
                    self.model.end(asked)
                    self._answered(asked)
        except simpy.Interrupt:
            return

    def _idle(self) -> Steps:
        """Until it is woken, or a frame comes that can be fed."""
        self._woken = self._clock.event()
        wait_s = self.model.next_frame_s(self._clock.now) - self._clock.now
        if wait_s == float("inf"):
            yield self._woken
        else:
            yield self._woken | self._clock.timeout(max(0.0, wait_s))
        self._woken = None
