"""A stage: some seconds on one street, with a script of who does what when.

Times are seconds from the stage's start, ways are metres along its road from there.
"""

from dataclasses import dataclass

from headstart.lab.world.kinds import (
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
from headstart.lab.world.profile import Profile

TURN_S = 1.6
"""How long the car swings out of a street, and again into the next."""
TURN_RAD = 0.75


@dataclass(frozen=True)
class Surroundings:
    """What stays the same as long as the street is the same."""

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
    """Someone who moves by a script; ``follows`` means ``along`` counts from the car itself."""

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
    """A traffic light: where it stands and what it shows from when on."""

    along: float
    changes: tuple[tuple[float, Lamp], ...]

    def at(self, time: float) -> Lamp:
        """What it shows."""
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
        """How far the car has come."""
        return self.speed.integral(time)

    def yaw(self, time: float) -> float:
        """Where the camera looks, against the road's direction; right is positive."""
        left = self.duration_s - time
        if self.entry is not Turning.NONE and time < TURN_S:
            return -_sign(self.entry) * TURN_RAD * _ease(1 - time / TURN_S)
        if self.exit is not Turning.NONE and left < TURN_S:
            return _sign(self.exit) * TURN_RAD * _ease(1 - left / TURN_S)
        return 0.0

    def turning(self, time: float) -> Turning:
        """Whether the car is on its way out of the street or into it."""
        if time < TURN_S * 0.8:
            return self.entry
        return self.exit if self.duration_s - time < TURN_S * 0.8 else Turning.NONE


def _sign(turning: Turning) -> float:
    return 1.0 if turning is Turning.RIGHT else -1.0


def _ease(share: float) -> float:
    return share * share * (3 - 2 * share)
