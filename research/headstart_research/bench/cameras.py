"""How many cameras an engine holds, measured in real time.

Every camera asks its question once a step, about the frames of that step. An engine holds as many
cameras as it answers without dropping a window, 95% of the answers within a step of their last
frame. Twice as many are tried until they are too many, and then numbers in between. All are cameras
of one site, whose memory grows from one number to the next; their clips are always new.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.engine.headstart import Headstart
from headstart.errors import BenchError
from headstart.live.session import LiveSession
from headstart.live.standing import StandingQuestion
from headstart.live.windows import Windows
from headstart_research.bench.workloads import Workload
from headstart_research.planning.cameras import most_held

WARMUP_WINDOWS = 2
"""Of each camera at each level: they fill the engine and do not count."""
MAX_CAMERAS = 32
TENANT = "cameras"
"""Whose they are."""
LEAD_S = 0.2  # between the last preparation and the first frame


@dataclass(frozen=True)
class Phase:
    """So many cameras, for so many windows each."""

    cameras: int
    windows: int


@dataclass(frozen=True)
class Outcome:
    """One window of one camera."""

    phase: int
    window: int
    """Its place in the phase."""
    wait_s: float | None
    """From its last frame to the last word; None if it was dropped."""


@dataclass(frozen=True)
class Level:
    """What became of the windows of so many cameras."""

    cameras: int
    answered: int
    dropped: int
    p50_s: float
    p95_s: float

    @classmethod
    def of(cls, cameras: int, outcomes: Sequence[Outcome]) -> "Level":
        """The figures of one phase, its first windows left out."""
        counted = [one.wait_s for one in outcomes if one.window >= WARMUP_WINDOWS]
        waits = [wait_s for wait_s in counted if wait_s is not None]
        p50_s = median(waits) if waits else 0.0
        p95_s = quantiles(waits, n=20, method="inclusive")[-1] if len(waits) > 1 else p50_s
        dropped = len(counted) - len(waits)
        return cls(cameras, len(waits), dropped, round(p50_s, 4), round(p95_s, 4))

    def is_held(self, step_s: float) -> bool:
        """Whether no window was dropped and 95% of the answers came within the step."""
        return not self.dropped and self.answered > 0 and self.p95_s < step_s


@dataclass(frozen=True)
class CamerasHeld:
    """How many cameras an engine held, and what it did with twice as many."""

    held: int
    step_s: float
    levels: tuple[Level, ...]
    doubled: Level
    """Twice the cameras that were held, or two where none was."""
    windows_to_recover: int | None
    """After the additional cameras had left: the windows until all answers came within the step
    again. None if they did not."""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "levels": [asdict(level) for level in self.levels]}


class CameraLoad:
    """Plays cameras of a live workload on one engine."""

    def __init__(
        self, engine: Headstart, work: Workload, *, step_s: float, windows: int, prefill: bool
    ) -> None:
        """``windows`` are counted of each camera; ``prefill`` says whether frames are fed."""
        if windows < 1 or step_s <= 0:
            raise BenchError(f"{windows} windows of {step_s} s: give at least one, above 0 s")
        self._engine, self._work, self._prefill = engine, work, prefill
        self._step_s, self._windows = step_s, windows + WARMUP_WINDOWS
        self._num_frames = engine.target.view.num_frames or 1
        self._num_rounds = 0

    def measure(self, on_progress: Callable[[str], None] = lambda _: None) -> CamerasHeld:
        """Find the largest number that is held, then try twice as many."""
        levels: dict[int, Level] = {}

        def is_held(count: int) -> bool:
            level = Level.of(count, self.play([Phase(count, self._windows)]))
            levels[count] = level
            on_progress(f"{count} cameras: p95 {level.p95_s:.2f} s, {level.dropped} dropped")
            return level.is_held(self._step_s)

        held = most_held(is_held, MAX_CAMERAS)
        usual, doubled = max(1, held), max(2, 2 * held)
        outcomes = self.play([Phase(doubled, self._windows), Phase(usual, self._windows)])
        level = Level.of(doubled, [one for one in outcomes if one.phase == 0])
        on_progress(f"{doubled} cameras: {level.dropped} windows dropped")
        after = [one for one in outcomes if one.phase == 1]
        tried = tuple(levels[count] for count in sorted(levels))
        return CamerasHeld(held, self._step_s, tried, level, self._recovery(after))

    def play(self, phases: Sequence[Phase]) -> list[Outcome]:
        """Feed the cameras of each phase in real time, and collect what became of each window."""
        count = max(phase.cameras for phase in phases)
        step_us, frame_s = round(self._step_s * 1e6), self._step_s / self._num_frames
        # Each time other clips than before: nothing that a camera sees is in the cache.
        rounds = range(self._num_rounds, self._num_rounds + count)
        self._num_rounds += count
        frames = [self._frames(number) for number in rounds]
        cameras = [_Camera(self._live(number), step_us) for number in rounds]
        due: list[tuple[float, int, int, int]] = []
        place: dict[tuple[int, int], tuple[int, int]] = {}
        first = 0
        for number, phase in enumerate(phases):
            for window in range(phase.windows):
                for camera in range(phase.cameras):
                    place[camera, first + window] = number, window
                    # The cameras' windows end one after the other, spread over the step.
                    start_s = (first + window + camera / count) * self._step_s
                    due += [
                        (start_s + slot * frame_s, camera, first + window, slot)
                        for slot in range(self._num_frames)
                    ]
            first += phase.windows
        begun_s = time.monotonic() + LEAD_S
        for due_s, camera, window, slot in sorted(due):
            time.sleep(max(0.0, begun_s + due_s - time.monotonic()))
            clip = frames[camera][window % len(frames[camera])]
            time_us = window * step_us + slot * step_us // self._num_frames
            cameras[camera].live.feed(clip[slot % len(clip)], time_us)
        for one in cameras:
            one.live.end()
        waits = [one.waits() for one in cameras]
        return [
            Outcome(phase, number, waits[camera].get(window))
            for (camera, window), (phase, number) in place.items()
        ]

    def _live(self, number: int) -> tuple[LiveSession, StandingQuestion]:
        session = self._engine.session(f"camera-{number}", TENANT)
        windows = Windows(self._step_s)
        live = LiveSession(session, windows, prefill=self._prefill, rehearse=False)
        question = self._work.camera(number, 0)[0].question
        asked = live.standing(question, max_tokens=self._work.max_tokens, schema=self._work.schema)
        return live, asked

    def _frames(self, number: int) -> list[NDArray[np.uint8]]:
        """The clips of a round's camera, as many frames each as the target is shown."""
        items = self._work.camera(number, 0)
        return [item.filmed(self._num_frames)[0].frames for item in items]

    def _recovery(self, outcomes: Sequence[Outcome]) -> int | None:
        late = [one.window for one in outcomes if one.wait_s is None or one.wait_s >= self._step_s]
        recovered = max(late, default=-1) + 1
        return recovered if recovered < self._windows else None


class _Camera:
    """A camera and a thread that reads its answers."""

    def __init__(self, asked: tuple[LiveSession, StandingQuestion], step_us: int) -> None:
        self.live, self._answers = asked
        self._step_us = step_us
        self._waits: dict[int, float] = {}
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for answer in self._answers:
            self._waits[answer.start_us // self._step_us] = answer.wait_s

    def waits(self) -> dict[int, float]:
        """The wait of each window that was answered, by its number, when all have been."""
        self._thread.join()
        return self._waits
