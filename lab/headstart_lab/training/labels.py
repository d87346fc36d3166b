"""The labels of the vision task: what each patch of a picture and the picture as a whole show.

They come from the state of the scene. What the camera cannot tell has no label, by the same rules
as those of the reference answers.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from headstart_lab.language.sighting import Reach, Sighting, sight_in_events, sight_in_frames
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
    Turning,
    Weather,
)
from headstart_lab.world.scene import Scene, Thing

UNKNOWN = -100
"""The label of what this picture cannot tell; torch's losses ignore it."""

_LANES = (2, 4)
WHOLE = {
    "lanes": len(_LANES), "bend": len(Bend), "edge": len(Edge), "place": len(Place),
    "left": len(Flank), "right": len(Flank), "landmark": len(Landmark), "junction": 2,
    "weather": len(Weather), "daylight": len(Daylight), "lamp": 1 + len(Lamp),
    "pace": len(Pace), "turning": len(Turning),
}  # fmt: skip
"""The classifications of the whole picture, each with its number of classes."""
PATCH = {
    "kind": 1 + len(Kind), "colour": len(Colour), "role": len(Role), "reach": len(Reach),
}  # fmt: skip
"""The classifications of each patch; kind 0 means that it shows no road user."""


@dataclass(frozen=True, eq=False)
class Labels:
    """int64: ``[classifications]`` of the whole, ``[classifications, patches]`` of the patches."""

    whole: NDArray[np.int64]
    patches: NDArray[np.int64]


def label_frame(scene: Scene, grid: int) -> Labels:
    """The labels of one frame of the colour camera; the car's pace and turning are unknown."""
    shown = [thing.in_frames for thing in scene.things]
    return _labels(scene, sight_in_frames(scene), shown, grid, moving=False)


def label_window(scene: Scene, grid: int) -> Labels:
    """The labels of a window of the event camera."""
    shown = [thing.in_events for thing in scene.things]
    return _labels(scene, sight_in_events(scene), shown, grid, moving=True)


def _labels(scene: Scene, sighting: Sighting, shown: list[bool], grid: int, moving: bool) -> Labels:
    ground = sighting.ground
    whole = dict.fromkeys(WHOLE, UNKNOWN)
    if ground is not None:
        whole |= {
            "lanes": _LANES.index(ground.num_lanes),
            "bend": _number(ground.bend),
            "edge": _number(ground.edge),
            "place": _number(ground.place),
            "left": _number(ground.left),
            "right": _number(ground.right),
            "landmark": _number(ground.landmark),
            "junction": int(ground.has_junction),
        }
    if moving:
        whole["weather"] = _number(sighting.weather or Weather.CLEAR)
        whole["pace"], whole["turning"] = _number(sighting.pace), _number(sighting.turning)
    else:
        assert sighting.weather is not None
        assert sighting.daylight is not None
        whole["weather"] = _number(sighting.weather)
        whole["daylight"] = _number(sighting.daylight)
        whole["lamp"] = 0 if sighting.lamp is None else 1 + _number(sighting.lamp)
    return Labels(np.array(list(whole.values())), _patches(scene, shown, grid, colours=not moving))


def _patches(scene: Scene, shown: list[bool], grid: int, colours: bool) -> NDArray[np.int64]:
    """The labels of the patches: each patch is labelled with a thing that covers much of it."""
    width, height = scene.camera.size.width, scene.camera.size.height
    owner = np.full((height, width), -1, dtype=np.int64)
    for number, thing in enumerate(scene.things):  # the farthest first
        box = thing.box
        rows = slice(max(0, int(box.top)), max(0, int(box.bottom) + 1))
        owner[rows, max(0, int(box.left)) : max(0, int(box.right) + 1)] = number
    labels = np.full((len(PATCH), grid, grid), UNKNOWN, dtype=np.int64)
    labels[0] = 0
    tall, wide = height // grid, width // grid
    blocks = owner[: tall * grid, : wide * grid].reshape(grid, tall, grid, wide)
    cells = blocks.transpose(0, 2, 1, 3).reshape(grid, grid, tall * wide)
    for number, thing in enumerate(scene.things):
        share = (cells == number).mean(axis=2)
        if not share.any():
            continue
        # Every visible thing gets at least one patch.
        covered = share >= min(0.3, share.max())
        labels[0, covered] = 1 + _number(thing.kind) if shown[number] else UNKNOWN
        for row, value in enumerate(_thing(thing, colours), start=1):
            labels[row, covered] = value if shown[number] else UNKNOWN
    return labels.reshape(len(PATCH), grid * grid)


def _thing(thing: Thing, colours: bool) -> tuple[int, int, int]:
    reach = Reach.of(thing.z)
    return (
        _number(thing.colour) if colours else UNKNOWN,
        _number(thing.role),
        _number(reach),
    )


def _number(value: Enum) -> int:
    return list(type(value)).index(value)
