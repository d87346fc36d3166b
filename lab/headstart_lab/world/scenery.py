"""Paints the road and what stands beside it, from the place and the distance travelled."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import cos, sin
from random import Random

from headstart_lab.world.air import Rgb
from headstart_lab.world.camera import Point
from headstart_lab.world.canvas import Canvas
from headstart_lab.world.flanks import FLANKS
from headstart_lab.world.kinds import Daylight, Edge, Landmark, Place, Weather
from headstart_lab.world.scene import Road, Scene

Stroke = tuple[float, Callable[[], None]]

_GRASS, _PAVING, _ASPHALT = (104, 140, 74), (158, 152, 146), (84, 84, 90)
_WET, _LINE, _KERB, _RAIL = (56, 60, 70), (235, 235, 230), (196, 192, 186), (178, 184, 192)
_STRIPS = (0.0, 4.0, 8.0, 13.0, 19.0, 27.0, 38.0, 55.0, 80.0, 120.0)
_AHEAD_M = 80.0
_DASH_M, _DASH_EVERY_M = 3.0, 9.0


def paint_ground(canvas: Canvas, scene: Scene) -> None:
    """Horizon, fields, carriageway, markings, crossing street."""
    road = scene.road
    _landmark(canvas, scene)
    in_town = road.place in (Place.CITY, Place.SUBURB)
    ground: Rgb = _PAVING if in_town and road.edge is Edge.KERB else _GRASS
    horizon = canvas.camera.horizon_px
    rows = ((0.0, 2.0, 90.0), (2.0, 6.0, 40.0), (6.0, 16.0, 17.0), (16.0, 120.0, 6.0))
    for top, bottom, distance in rows:
        rgb = canvas.air.arrive(ground, distance)
        sheet = [(0.0, horizon + top), (canvas.width, horizon + top)]
        canvas.flat([*sheet, (canvas.width, horizon + bottom), (0.0, horizon + bottom)], rgb)
    asphalt = _WET if scene.weather is Weather.RAIN else _ASPHALT
    half = road.half_m
    _band(canvas, -half, half, asphalt)
    if road.junction_z is not None and road.junction_z > -8.0:
        z = max(road.junction_z, 0.5)
        stop = road.junction_z + 8.0
        canvas.face([(-60, 0, z), (60, 0, z), (60, 0, stop), (-60, 0, stop)], asphalt)
    if road.edge is Edge.KERB:
        for x in (-half, half):
            _band(canvas, x - 0.12, x + 0.12, _KERB)
    else:
        for x in (-half + 0.3, half - 0.3):
            _band(canvas, x - 0.09, x + 0.09, _LINE)
    _dashes(canvas, road)
    if road.zebra_z is not None and 1.0 < road.zebra_z < 60.0:
        bars = int(half / 0.5)
        for bar in range(-bars, bars, 2):
            x, z = bar * 0.5, road.zebra_z
            canvas.face([(x, 0, z), (x + 0.5, 0, z), (x + 0.5, 0, z + 3), (x, 0, z + 3)], _LINE)


def roadside(canvas: Canvas, scene: Scene) -> list[Stroke]:
    """What stands beside the road, each with its distance, to be painted far to near."""
    road = scene.road
    # In town there is a pavement first.
    in_town = road.place in (Place.CITY, Place.SUBURB)
    strokes: list[Stroke] = []
    for sign, flank in ((-1, road.left), (1, road.right)):
        spacing, paint = FLANKS[flank]
        first = int(road.travelled_m // spacing)
        for cell in range(first, first + int(_AHEAD_M / spacing)):
            z = cell * spacing - road.travelled_m
            if road.junction_z is not None and -spacing < z - road.junction_z < 8.5:
                continue  # there is the other street
            random = Random(f"{road.scenery_seed}/{sign}/{cell}")
            x = sign * (road.half_m + (5.0 if in_town else 3.6))
            lit = scene.daylight is not Daylight.DAY
            # Sorted by its far end, so that what passes in front of it is painted later.
            strokes.append((z + spacing, partial(paint, canvas, x, z, random, lit)))
        if road.edge is Edge.GUARD_RAIL:
            strokes += _rail(canvas, road, sign * (road.half_m + 0.7))
    return strokes


def _band(canvas: Canvas, left: float, right: float, rgb: Rgb) -> None:
    """A strip along the whole road, in pieces whose colour changes with the distance."""
    for near, far in pairwise(_STRIPS):
        quad: list[Point] = [(left, 0, near), (right, 0, near), (right, 0, far), (left, 0, far)]
        canvas.face(quad, rgb)


def _dashes(canvas: Canvas, road: Road) -> None:
    offset = road.travelled_m % _DASH_EVERY_M
    lanes = range(-road.num_lanes // 2 + 1, road.num_lanes // 2)
    for number in range(7):
        z = number * _DASH_EVERY_M - offset
        if road.junction_z is not None and -_DASH_M < z - road.junction_z < 8.0:
            continue
        for lane in lanes:
            # On a four-lane road the centre line is solid.
            far = z + (_DASH_EVERY_M if lane == 0 and road.num_lanes == 4 else _DASH_M)
            x = 3.5 * lane
            quad: list[Point] = [
                (x - 0.1, 0, z),
                (x + 0.1, 0, z),
                (x + 0.1, 0, far),
                (x - 0.1, 0, far),
            ]
            canvas.face(quad, _LINE)


def _rail(canvas: Canvas, road: Road, x: float) -> list[Stroke]:
    strokes: list[Stroke] = []
    first = int(road.travelled_m // 4.0)
    for cell in range(first, first + 12):
        z = cell * 4.0 - road.travelled_m
        if road.junction_z is not None and -4.0 < z - road.junction_z < 8.5:
            continue

        def stroke(z: float = z) -> None:
            canvas.wall(x - 0.08, x + 0.08, 0.0, 0.75, z, (120, 124, 130))
            canvas.face([(x, 0.45, z), (x, 0.8, z), (x, 0.8, z + 4.0), (x, 0.45, z + 4.0)], _RAIL)

        strokes.append((z, stroke))
    return strokes


def _landmark(canvas: Canvas, scene: Scene) -> None:
    """Landmarks at the horizon: they turn with the camera and do not come nearer."""
    landmark, camera = scene.road.landmark, canvas.camera
    if landmark is Landmark.NOTHING:
        return
    random = Random(scene.road.scenery_seed)
    horizon = camera.horizon_px
    scale = canvas.width / 168
    # In a bend the far end of the road, and the horizon with it, lies to the side.
    middle = canvas.width / 2 - camera.yaw * camera.focal_px + camera.curvature * 2500 * scale
    distance = 30.0 if scene.weather is Weather.FOG else 120.0

    def rgb(colour: Rgb) -> Rgb:
        return canvas.air.arrive(colour, distance)

    if landmark in (Landmark.HILLS, Landmark.MOUNTAINS):
        steep = landmark is Landmark.MOUNTAINS
        colour: Rgb = (112, 112, 130) if steep else (86, 122, 84)
        for number in range(-4, 5):
            peak = middle + number * 42 * scale + random.uniform(-8, 8) * scale
            height = (random.uniform(24, 40) if steep else random.uniform(8, 14)) * scale
            reach = (34 if steep else 46) * scale
            top = (peak, horizon - height)
            canvas.flat([(peak - reach, horizon), top, (peak + reach, horizon)], rgb(colour))
            if steep:
                side = 0.3 * reach
                snow = [
                    (peak - side, top[1] + 0.3 * height),
                    top,
                    (peak + side, top[1] + 0.3 * height),
                ]
                canvas.flat(snow, rgb((238, 240, 246)))
    elif landmark is Landmark.LAKE:
        box = [(0.0, horizon - 1), (canvas.width, horizon - 1)]
        below = [(canvas.width, horizon + 5 * scale), (0.0, horizon + 5 * scale)]
        canvas.flat([*box, *below], rgb((60, 120, 190)))
    elif landmark is Landmark.TOWERS:
        for number in range(-3, 4):
            left = middle + number * 21 * scale + random.uniform(-4, 4) * scale
            top_row = horizon - random.uniform(16, 40) * scale
            right = left + random.uniform(8, 13) * scale
            body = [(left, horizon), (left, top_row), (right, top_row), (right, horizon)]
            canvas.flat(
                body, rgb(random.choice(((120, 124, 140), (142, 132, 122), (98, 108, 126))))
            )
    elif landmark is Landmark.CHURCH:
        left, right = middle - 5 * scale, middle + 5 * scale
        body = [(left, horizon), (left, horizon - 22 * scale), (right, horizon - 22 * scale)]
        canvas.flat([*body, (right, horizon)], rgb((170, 150, 128)))
        roof = [(left - scale, horizon - 22 * scale), (middle, horizon - 42 * scale)]
        canvas.flat([*roof, (right + scale, horizon - 22 * scale)], rgb((120, 60, 50)))
    else:
        for number in range(-2, 3):
            foot = middle + (number * 36 + 10) * scale
            hub = (foot, horizon - 26 * scale)
            canvas.flat(
                [(foot - scale, horizon), hub, (foot + scale, horizon)], rgb((232, 234, 238))
            )
            for blade in range(3):
                angle = scene.time_us / 1e6 * 2.0 + number + blade * 2.0944
                tip = (hub[0] + 13 * scale * cos(angle), hub[1] + 13 * scale * sin(angle))
                wide = (hub[0] + 1.6 * scale * sin(angle), hub[1] - 1.6 * scale * cos(angle))
                canvas.flat([hub, wide, tip], rgb((232, 234, 238)))
