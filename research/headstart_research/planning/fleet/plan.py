"""What a simulated fleet is made of, and what happens to it."""

from dataclasses import dataclass, field
from random import Random

from headstart.errors import PlanningError
from headstart_research.planning.engine_model import Questions


@dataclass(frozen=True, slots=True)
class Failures:
    """How engines die, how that is noticed, and how long a new one takes to start."""

    deaths_a_month: float = 0.0
    """Of each engine."""
    restart_s: float = 60.0
    noticed_s: float = 2.0
    """From a death until the router sends the cameras elsewhere."""
    num_killed: int = 0
    """Engines that die at the same moment, besides those that die by chance."""
    killed_at_s: float = 0.0
    is_memory_kept: bool = False
    """Whether an engine that gets a camera knows what was answered on it before."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Moments at which many cameras are asked at once."""

    every_s: float = 60.0
    share: float = 0.0
    """Of the cameras that get one more question at such a moment."""
    aligned: float = 0.0
    """The share of cameras whose windows all end at the same time, as with a common clock."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Cameras, engines, and what happens to them."""

    num_cameras: int
    num_engines: int
    questions: Questions
    failures: Failures = field(default_factory=Failures)
    bursts: Bursts = field(default_factory=Bursts)
    max_cameras: int | None = None
    """That one engine takes; more are refused."""

    def __post_init__(self) -> None:
        if self.num_cameras < 1 or self.num_engines < 1:
            raise PlanningError("a fleet has at least one camera and one engine: give both")
        if not 0 <= self.failures.num_killed < self.num_engines:
            raise PlanningError(
                f"{self.failures.num_killed} of {self.num_engines} engines die at once: leave one"
            )

    def phase_s(self, camera: int) -> float:
        """When the first window of a camera begins; always the same for the same camera."""
        drawn, aligned = Random(camera), self.bursts.aligned
        return 0.0 if drawn.random() < aligned else drawn.random() * self.questions.window.every_s

    def killed_engines(self) -> list[int]:
        """The engines that die at the same moment."""
        return list(range(self.failures.num_killed))
