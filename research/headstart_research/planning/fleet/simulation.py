"""A fleet in time: cameras, a router, engines that die and come back, bursts of questions.

Every camera of the fleet is placed, and every engine may die. Only some engines are simulated by
their passes (`sampling.py` chooses them): engines do not know of each other, so the waits on one
follow from its own cameras alone. Of the other engines only the cameras are known. The simulation
needs SimPy: `pip install 'headstart[fleet]'`.
"""

from collections.abc import Iterable
from random import Random

import numpy as np
import simpy

from headstart_research.planning.engine_model import Asked
from headstart_research.planning.fleet.outcome import Ended, Fate, Outcome
from headstart_research.planning.fleet.placing import Numbers, Placing
from headstart_research.planning.fleet.plan import FleetPlan
from headstart_research.planning.fleet.simulated_engine import SimulatedEngine, Steps

MONTH_S = 30 * 86400


class FleetSimulation:
    """One run; times are seconds from its beginning."""

    def __init__(
        self, plan: FleetPlan, placing: Placing, simulated: Iterable[int], seed: int = 0
    ) -> None:
        self._plan, self._placing, self._random = plan, placing, Random(seed)
        self._window = plan.questions.window
        self._outcome = Outcome()
        self._clock = clock = simpy.Environment()
        self._engines = {
            number: SimulatedEngine(clock, plan.questions, self._random, self._answered)
            for number in sorted(set(simulated))
        }
        self._is_up = np.ones(plan.num_engines, dtype=np.bool_)
        self._home = placing.owners(np.arange(plan.num_cameras, dtype=np.int64), self._is_up)
        self._owner = self._home.copy()
        self._asking: set[int] = set()
        """Cameras whose windows are simulated."""

    def run(self, seconds: float) -> Outcome:
        """Simulate so many seconds; windows that are under way at the end are not counted."""
        for number, engine in self._engines.items():
            for camera in np.nonzero(self._home == number)[0].tolist():
                engine.model.remember(camera)
                self._enter(camera)
        self._clock.process(self._deaths())
        self._clock.process(self._kill())
        self._clock.process(self._bursts())
        self._clock.run(until=seconds)
        return self._outcome

    def _engine_of(self, camera: int) -> SimulatedEngine | None:
        return self._engines.get(int(self._owner[camera % self._plan.num_cameras]))

    def _enter(self, camera: int) -> None:
        """A camera that was on no simulated engine asks about its windows from now on."""
        self._asking.add(camera)
        since_s = self._clock.now - self._plan.phase_s(camera)
        self._clock.process(self._camera(camera, -since_s % self._window.every_s))

    def _camera(self, camera: int, first_s: float) -> Steps:
        yield self._clock.timeout(first_s)
        number = 0
        while self._engine_of(camera) is not None:
            self._clock.process(self._grow(camera, number))
            number += 1
            yield self._clock.timeout(self._window.every_s)
        self._asking.remove(camera)

    def _grow(self, camera: int, number: int) -> Steps:
        """A window from its first frame to its last."""
        begun_s = self._clock.now
        asked = Asked(camera, number, begun_s, begun_s + self._window.window_s)
        engine = self._engine_of(camera)
        if engine is not None and engine.is_alive:
            engine.model.growing.append(asked)
            engine.wake()
        yield self._clock.timeout(self._window.window_s)
        was_fed = engine is not None and engine.model.forget(asked)
        if not was_fed or self._engine_of(camera) is not engine:
            asked.num_fed = 0  # What was computed is on an engine that the camera has left.
        self._land(asked)

    def _land(self, asked: Asked) -> None:
        """Send a window to its camera's engine, if that is simulated."""
        engine = self._engine_of(asked.camera)
        if engine is None:
            return
        if not engine.is_alive:
            asked.is_retried = True
            engine.stranded.append(asked)
        elif not self._is_taken(asked.camera % self._plan.num_cameras, engine):
            self._note(asked, Fate.REFUSED)
        else:
            if (dropped := engine.model.land(asked)) is not None:
                self._note(dropped, Fate.DROPPED)
            engine.wake()

    def _is_taken(self, camera: int, engine: SimulatedEngine) -> bool:
        most = self._plan.max_cameras
        if camera not in engine.cameras and most is not None and len(engine.cameras) >= most:
            return False
        engine.cameras.add(camera)
        return True

    def _answered(self, asked: Asked) -> None:
        self._note(asked, Fate.ANSWERED, self._clock.now - asked.landed_s)

    def _note(self, asked: Asked, fate: Fate, wait_s: float = 0.0) -> None:
        home = int(self._home[asked.camera % self._plan.num_cameras])
        self._outcome.ended.append(Ended(fate, home, asked.landed_s, wait_s, asked.is_retried))

    def _bursts(self) -> Steps:
        """Many cameras are asked one more question at the same moment."""
        bursts, num_cameras = self._plan.bursts, self._plan.num_cameras
        while bursts.share:
            yield self._clock.timeout(bursts.every_s)
            now_s = self._clock.now
            for camera in sorted(self._asking):
                if self._random.random() < bursts.share:
                    # Numbered apart: it does not wait for the camera's standing question.
                    self._land(Asked(camera + num_cameras, 0, now_s, now_s))

    def _deaths(self) -> Steps:
        """Engines die by chance, one at a time."""
        rate = self._plan.num_engines * self._plan.failures.deaths_a_month / MONTH_S
        while rate:
            yield self._clock.timeout(self._random.expovariate(rate))
            self._clock.process(self._death([self._random.randrange(self._plan.num_engines)]))

    def _kill(self) -> Steps:
        yield self._clock.timeout(self._plan.failures.killed_at_s)
        yield self._clock.process(self._death(self._plan.killed_engines()))

    def _death(self, numbers: list[int]) -> Steps:
        """Engines die together, are noticed to be gone, and come back."""
        failures = self._plan.failures
        simulated = [self._engines[number] for number in numbers if number in self._engines]
        numbers = [number for number in numbers if self._is_up[number]]
        gone = [engine for engine in simulated if engine.is_alive]
        for engine in gone:
            engine.die()
        noticed_s = min(failures.noticed_s, failures.restart_s)
        yield self._clock.timeout(noticed_s)
        self._is_up[numbers] = False
        self._move(np.nonzero(~self._is_up[self._owner])[0])
        for engine in gone:
            self._ask_again(engine)
        yield self._clock.timeout(failures.restart_s - noticed_s)
        for engine in gone:
            engine.start()
        self._is_up[numbers] = True
        self._move(np.nonzero(self._owner != self._home)[0])

    def _ask_again(self, engine: SimulatedEngine) -> None:
        stranded, engine.stranded = engine.stranded, []
        for asked in stranded:
            asked.num_fed = 0
            self._land(asked)

    def _move(self, cameras: Numbers) -> None:
        """Send cameras to where they belong, given which engines are up."""
        before = self._owner[cameras]
        after = self._placing.owners(cameras, self._is_up)
        self._owner[cameras] = after
        for camera, old, new in zip(cameras.tolist(), before.tolist(), after.tolist(), strict=True):
            if old != new and old in self._engines:
                self._engines[old].cameras.discard(camera)
            if new in self._engines:
                if self._plan.failures.is_memory_kept:
                    self._engines[new].model.remember(camera)
                if camera not in self._asking:
                    self._enter(camera)
