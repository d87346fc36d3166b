"""How many live cameras an engine holds: a small simulation of its steps.

Cameras begin at times drawn from a seed and then keep their pace; the same figures give the same
result. With many cameras the engine is hardly ever idle: feeding stops by itself, and prompts
become whole prefills again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from headstart_research.planning.engine_model import Asked, EngineModel, Questions, Work
from headstart_research.planning.live import LiveWindow

NUM_WINDOWS = 40
NUM_WARMUP = 2
NUM_BEGINNINGS = 16
"""A few cameras may happen to ask together or in turn: so many cameras are drawn over all runs."""
MAX_CAMERAS = 128
"""More are not tried: what is held is then at least this."""


@dataclass(frozen=True, slots=True)
class Load:
    """Some cameras on one engine."""

    num_cameras: int
    first_token_s: tuple[float, ...]
    last_word_s: tuple[float, ...]
    num_dropped: int
    fed_share: float
    """The share of frames, without each window's last, that were prefilled before the question."""
    busy_share: float
    """The share of time in which the engine answered; feeding is not counted."""

    def is_held(self, window: LiveWindow) -> bool:
        """Whether the 95th percentile of the wait is under the limit, and no window was dropped."""
        return not self.num_dropped and percentile(self.last_word_s, 0.95) < window.limit_s


class Cameras(Questions):
    """Cameras that all ask the same, on one engine."""

    __slots__ = ()

    def load(self, num_cameras: int) -> Load:
        """The waits with so many cameras; of a few, over several draws of when they begin."""
        num_draws = max(1, NUM_BEGINNINGS // num_cameras)
        loads = [_Run(self, num_cameras, Random(seed)).finished() for seed in range(num_draws)]
        return Load(
            num_cameras,
            tuple(wait_s for load in loads for wait_s in load.first_token_s),
            tuple(wait_s for load in loads for wait_s in load.last_word_s),
            sum(load.num_dropped for load in loads),
            sum(load.fed_share for load in loads) / num_draws,
            sum(load.busy_share for load in loads) / num_draws,
        )

    def held(self) -> Load | None:
        """The largest number of cameras that the engine holds; None if not even one."""
        load = cache(self.load)
        most = most_held(lambda number: load(number).is_held(self.window), MAX_CAMERAS)
        return load(most) if most else None


def most_held(is_held: Callable[[int], bool], limit: int) -> int:
    """The largest number up to a limit that is held, where all smaller ones are."""
    held, too_many = 0, 1
    while too_many <= limit and is_held(too_many):
        held, too_many = too_many, 2 * too_many
    too_many = min(too_many, limit + 1)
    while too_many - held > 1:
        middle = (held + too_many) // 2
        if is_held(middle):
            held = middle
        else:
            too_many = middle
    return held


def percentile(values: tuple[float, ...], share: float) -> float:
    """The smallest value that is not below this share of all; infinite without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


class _Run:
    """One simulation. Times are seconds from the start."""

    def __init__(self, cameras: Cameras, num_cameras: int, random: Random) -> None:
        self._window = cameras.window
        self._num_cameras, self._random = num_cameras, random
        self._engine = EngineModel(cameras, random)
        for camera in range(num_cameras):
            self._engine.remember(camera)
        self._now_s = self._busy_s = 0.0
        self._done: list[tuple[float, float]] = []
        self._num_fed = self._num_ended = self._num_dropped = 0
        self._to_come = self._engine.growing
        self._to_come.extend(self._windows())

    def _windows(self) -> list[Asked]:
        """Every camera's windows in the order in which they begin, and so end."""
        every_s, window_s = self._window.every_s, self._window.window_s
        starts = [
            (self._random.uniform(0.0, every_s), camera) for camera in range(self._num_cameras)
        ]
        return [
            Asked(camera, number, phase_s + number * every_s, phase_s + number * every_s + window_s)
            for number in range(NUM_WINDOWS)
            for phase_s, camera in sorted(starts)
        ]

    def finished(self) -> Load:
        while self._to_come or self._engine.num_under_way:
            self._land()
            work = self._engine.work(self._now_s)
            if work is None:
                self._now_s = min(self._to_come[0].landed_s, self._engine.next_frame_s(self._now_s))
            else:
                self._do(work)
        first, last = zip(*self._done, strict=True) if self._done else ((), ())
        num_feedable = max(1, self._num_ended * (self._window.num_frames - 1))
        return Load(
            self._num_cameras,
            first,
            last,
            self._num_dropped,
            self._num_fed / num_feedable,
            self._busy_s / self._now_s,
        )

    def _land(self) -> None:
        while self._to_come and self._to_come[0].landed_s <= self._now_s:
            asked = self._to_come.popleft()
            self._num_ended += 1
            self._num_fed += asked.num_fed
            self._num_dropped += self._engine.land(asked) is not None

    def _do(self, work: Work) -> None:
        self._now_s += work.seconds
        if not work.is_feed:
            self._busy_s += work.seconds
        if work.prompted is not None:
            work.prompted.first_token_s = self._now_s
        for asked in work.ended:
            if asked.number >= NUM_WARMUP:
                first_s = asked.first_token_s - asked.landed_s
                self._done.append((first_s, self._now_s - asked.landed_s))
            self._engine.end(asked)
