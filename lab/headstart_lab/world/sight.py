"""Decides which things each camera can recognise.

A frame shows what is large enough, not hidden, and lit. Events show what is large enough, not
hidden, and moves in the picture, by itself or because the car moves.
"""

from dataclasses import dataclass, replace

import numpy as np

from headstart_lab.world.camera import Camera, Point
from headstart_lab.world.kinds import Colour, Daylight, Kind, Role, Side, Weather
from headstart_lab.world.scene import Box, Extent, Road, Signal, Thing

MIN_HEIGHT_PX, MIN_PERSON_PX = 10.0, 16.0
"""The smallest recognisable vehicle and person, at a width of 168 pixels; people are narrow."""
MIN_SHOWN = 0.5
"""The share of a thing that must be in the picture and in front of the others."""
FOG_M = 30.0
LAMPS_AT_NIGHT_M = 40.0
HEADLIGHTS_M = 18.0
TREMBLING_MPS = 1.5
MIN_FLOW_PX = 0.6
SIGNAL_HEIGHT_M = (2.6, 4.4)
CORNER_M = 9.0

EXTENTS = {
    Kind.CAR: Extent(1.9, 1.5, 4.2),
    Kind.TRUCK: Extent(2.5, 3.5, 7.5),
    Kind.BUS: Extent(2.5, 3.0, 10.5),
    Kind.MOTORCYCLE: Extent(0.9, 1.65, 2.1),
    Kind.CYCLIST: Extent(0.7, 1.8, 1.8),
    Kind.PEDESTRIAN: Extent(0.65, 1.8, 0.5),
}


@dataclass(frozen=True)
class Presence:
    """A road user at a place, and its place at the end of the window of events."""

    kind: Kind
    colour: Colour
    role: Role
    side: Side
    x: float
    z: float
    later_x: float
    later_z: float
    stride: float
    moves: bool


def see(
    present: list[Presence], camera: Camera, weather: Weather, daylight: Daylight, mps: float
) -> tuple[Thing, ...]:
    """All road users in front of the camera, the farthest first."""
    scale = camera.size.width / 168
    things = []
    for being in sorted(present, key=lambda being: -being.z):
        extent = EXTENTS[being.kind]
        if being.role is Role.CROSSING:
            extent = Extent(extent.along, extent.up, extent.across)
        box = _box(camera, being.x, being.z, extent)
        if box is None:
            continue
        later = _box(camera, being.later_x, being.later_z, extent) or box
        flow = max(abs(later.left - box.left), abs(later.right - box.right),
                   abs(later.bottom - box.bottom))  # fmt: skip
        things.append(
            Thing(
                being.kind, being.colour, being.role, being.side, being.x, being.z, being.stride,
                extent, box,
                moves=being.moves,
                in_frames=_lit(being, weather, daylight),
                in_events=mps >= TREMBLING_MPS or flow >= MIN_FLOW_PX * scale,
            )
        )  # fmt: skip
    shown = _shown(things, camera)
    seen = []
    for thing, share in zip(things, shown, strict=True):
        smallest = MIN_HEIGHT_PX if thing.kind.is_vehicle else MIN_PERSON_PX
        clear = share >= MIN_SHOWN and thing.box.height >= smallest * scale
        # Buildings at the corner hide what is still in the crossing street.
        clear &= thing.role is not Role.CROSSING or abs(thing.x) < CORNER_M
        seen.append(
            replace(thing, in_frames=thing.in_frames and clear, in_events=thing.in_events and clear)
        )
    return tuple(seen)


def see_signal(signal: Signal, road: Road, camera: Camera, things: tuple[Thing, ...]) -> Signal:
    """The traffic light, with ``in_frames`` set to whether the frames show it."""
    box = signal_box(signal, road, camera)
    if box is None:
        return signal
    column = (box.left + box.right) / 2
    row = (box.top + box.bottom) / 2
    hidden = any(
        t.z < signal.z and t.box.left < column < t.box.right and t.box.top < row < t.box.bottom
        for t in things
    )
    inside = 0 < column < camera.size.width and 0 < row < camera.size.height
    large = box.height >= MIN_HEIGHT_PX * camera.size.width / 168
    return replace(signal, in_frames=inside and large and not hidden)


def signal_box(signal: Signal, road: Road, camera: Camera) -> Box | None:
    """Where the housing of a traffic light is in the picture."""
    low, high = SIGNAL_HEIGHT_M
    x = road.half_m + 0.6
    pixels = camera.outline([(x - 0.35, low, signal.z), (x + 0.35, high, signal.z)])
    if len(pixels) < 2:
        return None
    (left, bottom), (right, top) = pixels[:2]
    return Box(left, top, right, bottom)


def _box(camera: Camera, x: float, z: float, extent: Extent) -> Box | None:
    half = extent.across / 2
    corners: list[Point] = [
        (x + side, up, z + along)
        for side in (-half, half)
        for up in (0.0, extent.up)
        for along in (0.0, extent.along)
    ]
    pixels = camera.outline(corners)
    if not pixels:
        return None
    columns, rows = zip(*pixels, strict=True)
    return Box(min(columns), min(rows), max(columns), max(rows))


def _lit(being: Presence, weather: Weather, daylight: Daylight) -> bool:
    reach = FOG_M if weather is Weather.FOG else 200.0
    if daylight is Daylight.NIGHT:
        # Moving vehicles and bicycles have lamps on; parked ones and pedestrians have none.
        shines = being.kind is not Kind.PEDESTRIAN and being.role is not Role.PARKED
        reach = min(reach, LAMPS_AT_NIGHT_M if shines else HEADLIGHTS_M)
    return being.z <= reach


def _shown(things: list[Thing], camera: Camera) -> list[float]:
    """The share of each thing's box that is inside the picture and not behind a nearer thing."""
    width, height = camera.size.width, camera.size.height
    owner = np.full((height, width), -1, dtype=np.int16)
    for number, thing in enumerate(things):
        box = thing.box
        rows = slice(max(0, int(box.top)), max(0, int(box.bottom) + 1))
        owner[rows, max(0, int(box.left)) : max(0, int(box.right) + 1)] = number
    counts = np.bincount(owner[owner >= 0], minlength=len(things))
    areas = [(int(t.box.bottom) + 1 - int(t.box.top)) * (int(t.box.right) + 1 - int(t.box.left))
             for t in things]  # fmt: skip
    return [float(count) / max(1, area) for count, area in zip(counts, areas, strict=True)]
