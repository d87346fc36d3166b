"""What each of the two cameras can see of a scene; answers mention nothing else.

The colour camera sees colours, traffic lights, weather and light, and at night little beyond the
reach of the headlights. The event camera sees outlines of what moves in the picture: everything
while the car drives, and only what moves by itself while the car stands. It never sees a colour, a
traffic light or the time of day. It sees rain falling, and cannot tell fog from a clear sky.
"""

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum

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
from headstart_lab.world.scene import Road, Scene, Thing

TORSO_PX = 20.0
"""The height from which a pedestrian's colour can be seen, at a width of 168 pixels."""
COLOUR_AT_NIGHT_M = 18.0


class Reach(Enum):
    """How far away, in three steps."""

    NEAR = "near"
    MIDDLE = "middle"
    FAR = "far"

    @classmethod
    def of(cls, distance_m: float) -> "Reach":
        """The step of a distance."""
        if distance_m < 10.0:
            return cls.NEAR
        return cls.MIDDLE if distance_m < 20.0 else cls.FAR


@dataclass(frozen=True)
class Group:
    """Things of one kind that do the same on the same side."""

    kind: Kind
    role: Role
    side: Side
    num: int
    colour: Colour | None
    reach: Reach
    moves: bool
    weight: float


@dataclass(frozen=True)
class Ground:
    """The road and its surroundings as far as they can be made out."""

    place: Place
    num_lanes: int
    bend: Bend
    edge: Edge
    left: Flank
    right: Flank
    landmark: Landmark
    has_junction: bool


@dataclass(frozen=True)
class Sighting:
    """Everything one camera can see; None means that it cannot tell."""

    groups: tuple[Group, ...]
    ground: Ground | None
    weather: Weather | None
    daylight: Daylight | None
    lamp: Lamp | None
    pace: Pace
    turning: Turning


def sight_in_frames(scene: Scene) -> Sighting:
    """What the colour camera can see of a scene."""
    shown = [thing for thing in scene.things if thing.in_frames]
    hazy = scene.weather is Weather.FOG or scene.daylight is Daylight.NIGHT
    return Sighting(
        groups=_groups(shown, scene, colours=True),
        ground=_ground(scene.road, far=not hazy),
        weather=scene.weather,
        daylight=scene.daylight,
        lamp=scene.signal.lamp if scene.signal and scene.signal.in_frames else None,
        pace=scene.pace,
        turning=scene.turning,
    )


def sight_in_events(scene: Scene) -> Sighting:
    """What the event camera can see of a scene."""
    shown = [thing for thing in scene.things if thing.in_events]
    stands = scene.pace is Pace.STANDING
    return Sighting(
        groups=_groups(shown, scene, colours=False),
        ground=None if stands else _ground(scene.road, far=scene.weather is not Weather.FOG),
        weather=Weather.RAIN if scene.weather is Weather.RAIN else None,
        daylight=None,
        lamp=None,
        pace=scene.pace,
        turning=scene.turning,
    )


def _ground(road: Road, far: bool) -> Ground:
    return Ground(
        place=road.place,
        num_lanes=road.num_lanes,
        bend=road.bend,
        edge=road.edge,
        left=road.left,
        right=road.right,
        landmark=road.landmark if far else Landmark.NOTHING,
        has_junction=road.junction_in_view,
    )


def _groups(things: list[Thing], scene: Scene, colours: bool) -> tuple[Group, ...]:
    """The groups, most salient first: those that are large, near, or in the car's way."""
    gathered: dict[tuple[Kind, Role, Side], list[Thing]] = defaultdict(list)
    for thing in things:
        gathered[thing.kind, thing.role, thing.side].append(thing)
    groups = []
    for (kind, role, side), members in gathered.items():
        nearest = min(members, key=lambda thing: thing.z)
        shades = {thing.colour for thing in members}
        large = kind is not Kind.PEDESTRIAN or (
            nearest.box.height >= TORSO_PX * scene.camera.size.width / 168
        )
        bright = scene.daylight is not Daylight.NIGHT or nearest.z <= COLOUR_AT_NIGHT_M
        named = colours and len(shades) == 1 and large and bright and len(members) == 1
        weight = sum(thing.box.area for thing in members) * _URGENCY[role]
        colour = nearest.colour if named else None
        moves = any(thing.moves for thing in members)
        reach = Reach.of(nearest.z)
        groups.append(Group(kind, role, side, len(members), colour, reach, moves, weight))
    return tuple(sorted(groups, key=lambda group: -group.weight))


_URGENCY = {
    Role.CROSSING: 6.0,
    Role.AHEAD: 2.0,
    Role.BESIDE: 1.2,
    Role.ONCOMING: 1.2,
    Role.WALKING: 1.5,
    Role.WAITING: 1.2,
    Role.PARKED: 0.4,
}
