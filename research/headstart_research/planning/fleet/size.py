"""How many engines a fleet needs on paper, and what its KV cache, network and hours come to.

A router that hashes does not fill engines alike. With 160 points an engine's part of the ring
varies by 8%, and the cameras that fall into a part vary as rare events do. So their number on
an engine is negative binomial, and engines are added until nearly no camera is on an engine that
holds fewer than it got.
"""

from dataclasses import dataclass
from math import ceil, exp, lgamma, log

from headstart.errors import PlanningError
from headstart_research.planning.fleet.placing import POINTS
from headstart_research.planning.live import LiveWindow

HOURS_A_MONTH = 730.5


@dataclass(frozen=True, slots=True)
class EngineSize:
    """The hardware of one engine, and what a window takes of it."""

    num_gpus: int
    kv_bytes: float
    """Memory for the KV cache, all GPUs of the engine together."""
    kv_bytes_per_token: float
    window_tokens: int
    """Tokens of a window's prompt and answer."""
    max_cameras: int
    """The server's own limit of live cameras, `max_live`."""

    def __post_init__(self) -> None:
        if min(self.num_gpus, self.max_cameras, self.window_tokens) < 1:
            raise PlanningError("an engine has at least one GPU, one camera and one token")
        if self.kv_bytes < self.window_bytes:
            raise PlanningError(
                f"the KV cache of {self.kv_bytes / 2**30:.2g} GiB is smaller than one window of"
                f" {self.window_bytes / 2**30:.2g} GiB: give more memory, or fewer frames"
            )

    @property
    def window_bytes(self) -> float:
        """The KV cache that one window takes."""
        return self.kv_bytes_per_token * self.window_tokens

    @property
    def max_windows(self) -> int:
        """How many windows the KV cache holds at once."""
        return int(self.kv_bytes // self.window_bytes)


@dataclass(frozen=True, slots=True)
class FleetSize:
    """The engines for a number of cameras, the spare ones included."""

    num_cameras: int
    held: int
    """Cameras that one engine holds."""
    num_engines: int

    def __post_init__(self) -> None:
        if self.held < 1:
            raise PlanningError(
                "an engine does not hold even one such camera: ask less often, allow a longer wait,"
                " or give faster engines"
            )

    @property
    def fill(self) -> float:
        """Cameras of an average engine, as a share of what it holds."""
        return self.num_cameras / self.num_engines / self.held

    def monthly_price(self, gpu_hour: float, num_gpus: int) -> float:
        """The price of all GPUs for a month, over the cameras."""
        return self.num_engines * num_gpus * gpu_hour * HOURS_A_MONTH / self.num_cameras


def bounded_size(num_cameras: int, held: int, num_spare: int, bound: float = 1.0) -> FleetSize:
    """Engines if none gets more than ``bound`` times the cameras of an average one.

    A bound of 1 is a router that may send every question to any engine.
    """
    return FleetSize(num_cameras, held, ceil(bound * num_cameras / max(1, held) - 1e-9) + num_spare)


def hashed_size(num_cameras: int, held: int, num_spare: int, max_crowded: float) -> FleetSize:
    """The fewest engines behind a ring with no more cameras than allowed on crowded ones."""
    if not 0 < max_crowded < 1:
        raise PlanningError(f"a share of {max_crowded:g} on crowded engines: give one in (0, 1)")
    least = bounded_size(num_cameras, held, 0).num_engines
    low, high = least - 1, least
    while crowded_share(num_cameras, high, held) > max_crowded:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if crowded_share(num_cameras, middle, held) > max_crowded:
            low = middle
        else:
            high = middle
    return FleetSize(num_cameras, held, high + num_spare)


def crowded_share(num_cameras: int, num_engines: int, held: int) -> float:
    """The share of cameras that a ring puts on engines with more cameras than they hold."""
    if num_engines == 1:
        return float(num_cameras > held)
    if num_cameras <= held:
        return 0.0
    mean = num_cameras / num_engines
    on_others = sum(number * _chance(number, mean) for number in range(held + 1))
    return max(0.0, 1.0 - on_others / mean)


def _chance(number: int, mean: float) -> float:
    """The chance of so many cameras on an engine: negative binomial, its shape the points."""
    return exp(
        lgamma(number + POINTS)
        - lgamma(POINTS)
        - lgamma(number + 1)
        + POINTS * log(POINTS / (POINTS + mean))
        + number * log(mean / (POINTS + mean))
    )


def camera_bits_a_second(window: LiveWindow, frame_bytes: float) -> float:
    """What a camera sends: every frame once, however many windows it is in."""
    return 8 * frame_bytes * window.num_frames / window.window_s
