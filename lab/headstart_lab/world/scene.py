"""A scene: everything visible at one instant of a drive, with its place in the picture."""

from dataclasses import dataclass

from headstart_lab.world.camera import Camera
from headstart_lab.world.kinds import (
    Bend,
    Colour,
    Daylight,
    Edge,
    Flank,
    Kind,
    Lamp,
    Landmark,
    Pace,
    Place,
    Role,
    Side,
    Turning,
    Weather,
)


@dataclass(frozen=True)
class Extent:
    """How large a thing is, in metres: across the road, up, and along the road."""

    across: float
    up: float
    along: float


@dataclass(frozen=True)
class Box:
    """A rectangle in the picture, in pixels; it may reach outside."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """Pixels from top to bottom."""
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """Square pixels."""
        return (self.right - self.left) * self.height


@dataclass(frozen=True)
class Thing:
    """A road user.

    ``x`` is its middle and ``z`` its near end; ``stride`` is how far it has moved by itself, and
    ``moves`` whether it moves now. ``in_frames`` and ``in_events`` say whether each camera can
    recognise it.
    """

    kind: Kind
    colour: Colour
    role: Role
    side: Side
    x: float
    z: float
    stride: float
    extent: Extent
    box: Box
    moves: bool
    in_frames: bool
    in_events: bool


@dataclass(frozen=True)
class Signal:
    """A traffic light."""

    lamp: Lamp
    z: float
    in_frames: bool


@dataclass(frozen=True)
class Road:
    """The carriageway and what stands beside it."""

    place: Place
    num_lanes: int
    bend: Bend
    edge: Edge
    left: Flank
    right: Flank
    landmark: Landmark
    junction_z: float | None
    zebra_z: float | None
    travelled_m: float
    scenery_seed: int

    @property
    def half_m(self) -> float:
        """From the centre line to the edge."""
        return 3.5 * self.num_lanes / 2

    @property
    def junction_in_view(self) -> bool:
        """Whether a crossing street can be seen ahead."""
        return self.junction_z is not None and 2.0 < self.junction_z < 40.0


@dataclass(frozen=True)
class Scene:
    """Everything visible at one time; `headstart_lab.world.painter.render` draws it."""

    time_us: int
    camera: Camera
    road: Road
    weather: Weather
    daylight: Daylight
    pace: Pace
    turning: Turning
    things: tuple[Thing, ...]
    signal: Signal | None
