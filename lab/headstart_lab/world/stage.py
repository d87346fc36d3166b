"""A stage: some seconds on one street, with a script of its road users.

Times are seconds from the start of the stage, distances metres along its road from there.
"""

from dataclasses import dataclass

from headstart_lab.world.kinds import (
    Colour,
    Daylight,
    Edge,
    Flank,
    Kind,
    Lamp,
    Landmark,
    Place,
    Role,
    Side,
    Turning,
    Weather,
)
from headstart_lab.world.profile import Profile

TURN_S = 1.6
"""How long the car takes to turn out of a street, and again into the next."""
TURN_RAD = 0.75


@dataclass(frozen=True)
class Surroundings:
    """What does not change within a street."""

    place: Place
    num_lanes: int
    lane: int
    edge: Edge
    left: Flank
    right: Flank
    landmark: Landmark
    parked_share: float
    seed: int

    @property
    def car_x(self) -> float:
        """Where on the road the car drives: lane 0 is next to the centre line."""
        return 1.75 + 3.5 * self.lane


@dataclass(frozen=True)
class Actor:
    """A road user that moves by a script; with ``follows``, ``along`` is relative to the car."""

    kind: Kind
    colour: Colour
    role: Role
    side: Side
    start_s: float
    stop_s: float
    across: Profile
    along: Profile
    follows: bool = False


@dataclass(frozen=True)
class SignalPlan:
    """A traffic light: where it stands, and the times at which it changes."""

    along: float
    changes: tuple[tuple[float, Lamp], ...]

    def at(self, time: float) -> Lamp:
        """The lamp that is lit."""
        return [lamp for start, lamp in self.changes if start <= time][-1]


@dataclass(frozen=True)
class Stage:
    """One street for a whole number of seconds."""

    start_s: int
    duration_s: int
    origin_m: float
    surroundings: Surroundings
    weather: Weather
    daylight: Daylight
    entry: Turning
    exit: Turning
    speed: Profile
    curvature: Profile
    junction_m: float | None
    zebra_m: float | None
    signal: SignalPlan | None
    actors: tuple[Actor, ...]

    def way(self, time: float) -> float:
        """The distance the car has driven."""
        return self.speed.integral(time)

    def yaw(self, time: float) -> float:
        """The angle between the camera and the road; right is positive."""
        left = self.duration_s - time
        if self.entry is not Turning.NONE and time < TURN_S:
            return -_sign(self.entry) * TURN_RAD * _ease(1 - time / TURN_S)
        if self.exit is not Turning.NONE and left < TURN_S:
            return _sign(self.exit) * TURN_RAD * _ease(1 - left / TURN_S)
        return 0.0

    def turning(self, time: float) -> Turning:
        """Which way the car is turning, out of the street or into it."""
        if time < TURN_S * 0.8:
            return self.entry
        return self.exit if self.duration_s - time < TURN_S * 0.8 else Turning.NONE


def _sign(turning: Turning) -> float:
    return 1.0 if turning is Turning.RIGHT else -1.0


def _ease(share: float) -> float:
    return share * share * (3 - 2 * share)
