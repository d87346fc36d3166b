"""How many live cameras an engine holds: a small simulation of its steps.

Cameras begin at times drawn from a seed and then keep their pace; the same figures give the same
result. In a step the engine takes one prompt that waits, the oldest first, and one pass of every
answer under way, with as long a draft as pays in that batch. Frames are fed only while no question
is under way: with many cameras feeding stops by itself, and prompts become whole prefills again.
A camera has one question under way at a time; of the windows that end meanwhile the newest is asked
next, and the others are dropped.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import neg
from random import Random

from headstart.planner.costs import Costs
from headstart.planner.live import LiveWindow
from headstart.planner.survival import Survival

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
        """Whether the 95th percentile of the wait is under the step, and no window was dropped."""
        return not self.num_dropped and percentile(self.last_word_s, 0.95) < window.every_s


@dataclass(frozen=True, slots=True)
class Cameras:
    """What every camera asks, and what that costs the engine."""

    costs: Costs
    window: LiveWindow
    num_tokens: int
    survival: Survival = field(default_factory=Survival)
    """Of drafts at every pass; empty for an engine without drafts."""
    is_fed: bool = False

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
        best = None
        low, high = 0, 1
        while high <= MAX_CAMERAS and (load := self.load(high)).is_held(self.window):
            best, low, high = load, high, 2 * high
        while low < MAX_CAMERAS and high - low > 1:
            middle = (low + high) // 2
            if (load := self.load(middle)).is_held(self.window):
                best, low = load, middle
            else:
                high = middle
        return best


def percentile(values: tuple[float, ...], share: float) -> float:
    """The smallest value that is not below this share of all; infinite without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


@dataclass(slots=True, eq=False)
class _Asked:
    camera: int
    number: int
    start_s: float
    landed_s: float
    num_fed: int = 0
    missing: int = 0
    first_token_s: float = 0.0


class _Run:
    """One simulation. Times are seconds from the start."""

    def __init__(self, cameras: Cameras, num_cameras: int, random: Random) -> None:
        self._costs, self._window = cameras.costs, cameras.window
        self._cameras, self._num_cameras = cameras, num_cameras
        self._shares = cameras.survival.shares
        self._random = random
        self._frame_every_s = self._window.window_s / self._window.num_frames
        self._now_s = self._busy_s = 0.0
        self._prompts: list[_Asked] = []
        self._running: list[_Asked] = []
        self._asking: dict[int, _Asked] = {}
        self._next: dict[int, _Asked] = {}
        self._done: list[tuple[float, float]] = []
        self._num_dropped = self._num_fed = self._num_ended = 0
        self._to_come = deque(self._windows())

    def _windows(self) -> list[_Asked]:
        """Every camera's windows in the order in which they begin, and so end."""
        every_s, window_s = self._window.every_s, self._window.window_s
        starts = [
            (self._random.uniform(0.0, every_s), camera) for camera in range(self._num_cameras)
        ]
        return [
            _Asked(
                camera, number, phase_s + number * every_s, phase_s + number * every_s + window_s
            )
            for number in range(NUM_WINDOWS)
            for phase_s, camera in sorted(starts)
        ]

    def finished(self) -> Load:
        """Run to the end."""
        while self._to_come or self._prompts or self._running:
            self._land()
            if self._prompts or self._running:
                self._step()
            elif not self._feed():
                self._now_s = self._next_arrival_s()
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
            if asked.camera in self._asking:
                self._num_dropped += asked.camera in self._next
                self._next[asked.camera] = asked
            else:
                self._ask(asked)

    def _ask(self, asked: _Asked) -> None:
        self._asking[asked.camera] = asked
        self._prompts.append(asked)

    def _step(self) -> None:
        """One prompt and one pass of the others, together."""
        prompted = self._prompts.pop(0) if self._prompts else None
        batch = len(self._running)
        drafted = self._draft_tokens(batch + (prompted is not None))
        seconds = self._costs.pass_s(drafted, batch) if batch else 0.0
        if prompted is not None:
            num_unfed = self._window.num_frames - prompted.num_fed
            seconds += self._window.prompt_s(self._costs, num_unfed)
            seconds += self._costs.pass_s(drafted) - self._costs.step_s
        self._now_s += seconds
        self._busy_s += seconds
        for asked in self._running:
            asked.missing -= 1 + self._accepted(drafted)
        if prompted is not None:
            prompted.first_token_s = self._now_s
            prompted.missing = self._cameras.num_tokens - 1 - self._accepted(drafted)
            self._running.append(prompted)
        for asked in [asked for asked in self._running if asked.missing <= 0]:
            self._end(asked)

    def _draft_tokens(self, batch: int) -> int:
        """As many tokens as earn their price in a batch of this size: the budget's rule."""
        saved_s = self._costs.step_s / batch
        worth_s = [share * saved_s - self._costs.verify_token_s for share in self._shares]
        length = sum(1 for _ in takewhile(lambda each_s: each_s > 0, worth_s))
        return length if sum(worth_s[:length]) * batch > self._costs.verify_pass_s else 0

    def _accepted(self, drafted: int) -> int:
        """How many tokens of a draft are accepted: as many as have shares above a drawn one."""
        if not drafted:
            return 0
        drawn = self._random.random()
        return bisect_right(self._shares, -drawn, 0, drafted, key=neg)

    def _end(self, asked: _Asked) -> None:
        self._running.remove(asked)
        if asked.number >= NUM_WARMUP:
            first_s = asked.first_token_s - asked.landed_s
            self._done.append((first_s, self._now_s - asked.landed_s))
        del self._asking[asked.camera]
        if asked.camera in self._next:
            self._ask(self._next.pop(asked.camera))

    def _feed(self) -> bool:
        """Feed the frames that have come of the window that ends first; False if there is none."""
        if not self._cameras.is_fed:
            return False
        for asked in self._growing():
            num_new = self._num_arrived(asked) - asked.num_fed
            if num_new > 0:
                self._now_s += self._window.feeding_s(self._costs, num_new)
                asked.num_fed += num_new
                return True
        return False

    def _growing(self) -> Iterator[_Asked]:
        return takewhile(lambda asked: asked.start_s <= self._now_s, self._to_come)

    def _num_arrived(self, asked: _Asked) -> int:
        """Without the last frame, which comes with the question."""
        num = int((self._now_s - asked.start_s) / self._frame_every_s + 1e-9)
        return min(num, self._window.num_frames - 1)

    def _next_arrival_s(self) -> float:
        times_s = [self._to_come[0].landed_s]
        if self._cameras.is_fed:
            soon = islice(self._to_come, 1 + sum(1 for _ in self._growing()))
            times_s += [
                asked.start_s + (max(0, self._num_arrived(asked)) + 1) * self._frame_every_s
                for asked in soon
            ]
        return min(times_s)
