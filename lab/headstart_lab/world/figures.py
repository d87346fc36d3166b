"""Paints vehicles, people and traffic lights."""

from math import sin

from headstart_lab.world.air import Rgb
from headstart_lab.world.canvas import Canvas
from headstart_lab.world.kinds import Colour, Daylight, Kind, Lamp, Role, Side
from headstart_lab.world.scene import Road, Signal, Thing
from headstart_lab.world.sight import SIGNAL_HEIGHT_M

PAINTS: dict[Colour, Rgb] = {
    Colour.RED: (206, 36, 36),
    Colour.BLUE: (40, 84, 206),
    Colour.WHITE: (242, 242, 242),
    Colour.BLACK: (28, 28, 32),
    Colour.YELLOW: (240, 204, 40),
    Colour.GREEN: (40, 152, 70),
}
LAMPS: dict[Lamp, Rgb] = {
    Lamp.RED: (255, 40, 30),
    Lamp.AMBER: (255, 176, 20),
    Lamp.GREEN: (40, 240, 90),
}
_GLASS, _TYRE, _SKIN, _CHROME = (58, 70, 88), (24, 24, 26), (214, 170, 140), (176, 178, 184)
_TAIL, _HEAD = (255, 40, 30), (255, 250, 226)


def paint_thing(canvas: Canvas, thing: Thing) -> None:
    """Draw one thing where it is."""
    if thing.kind in (Kind.PEDESTRIAN, Kind.CYCLIST, Kind.MOTORCYCLE):
        _rider_or_walker(canvas, thing)
    elif thing.role is Role.CROSSING:
        _vehicle_from_the_side(canvas, thing)
    else:
        _vehicle_along_the_road(canvas, thing)


def paint_signal(canvas: Canvas, signal: Signal, road: Road) -> None:
    """A mast at the right edge with three lamps, one of them lit."""
    low, high = SIGNAL_HEIGHT_M
    x, z = road.half_m + 0.6, signal.z
    canvas.wall(x - 0.09, x + 0.09, 0.0, low, z, (70, 72, 76))
    canvas.wall(x - 0.42, x + 0.42, low, high, z, (26, 26, 28))
    for number, lamp in enumerate((Lamp.GREEN, Lamp.AMBER, Lamp.RED)):
        y = low + 0.3 + 0.6 * number
        shines = lamp is signal.lamp
        canvas.disc(
            x, y, z, 0.36 if shines else 0.22, LAMPS[lamp] if shines else (52, 52, 52), shines
        )


def _vehicle_along_the_road(canvas: Canvas, thing: Thing) -> None:
    rgb = PAINTS[thing.colour]
    half, high, far = thing.extent.across / 2, thing.extent.up, thing.z + thing.extent.along
    x, z = thing.x, thing.z
    side = x - half if x > canvas.camera.x else x + half
    dark = _darker(rgb)
    if thing.kind is Kind.CAR:
        waist = 0.58 * high
        canvas.face(
            [(side, 0.25, z), (side, waist, z), (side, waist, far), (side, 0.25, far)], dark
        )
        top = x + (side - x) * 0.8
        canvas.face(
            [
                (side, waist, z + 0.6),
                (top, high, z + 1.2),
                (top, high, far - 1.6),
                (side, waist, far - 0.9),
            ],
            _GLASS,
        )
        for wheel in (z + 0.8, far - 0.9):
            canvas.disc(side, 0.32, wheel, 0.32, _TYRE)
        canvas.wall(x - half, x + half, 0.25, waist, z, rgb)
        canvas.face(
            [
                (x - half * 0.95, waist, z),
                (x + half * 0.95, waist, z),
                (x + half * 0.72, high, z + 0.5),
                (x - half * 0.72, high, z + 0.5),
            ],
            _GLASS,
        )
        canvas.face(
            [
                (x - half * 0.72, high - 0.1, z + 0.5),
                (x + half * 0.72, high - 0.1, z + 0.5),
                (x + half * 0.72, high, z + 0.6),
                (x - half * 0.72, high, z + 0.6),
            ],
            rgb,
        )
    else:
        canvas.face([(side, 0.5, z), (side, high, z), (side, high, far), (side, 0.5, far)], dark)
        if thing.kind is Kind.BUS:
            for number in range(5):
                start = z + 0.6 + 2.0 * number
                canvas.face(
                    [
                        (side, 1.4, start),
                        (side, 2.4, start),
                        (side, 2.4, start + 1.5),
                        (side, 1.4, start + 1.5),
                    ],
                    _GLASS,
                )
        for wheel in (z + 1.2, far - 1.4):
            canvas.disc(side, 0.5, wheel, 0.5, _TYRE)
        canvas.wall(x - half, x + half, 0.5, high, z, rgb)
        if thing.kind is Kind.BUS:
            canvas.wall(x - half * 0.9, x + half * 0.9, 1.3, 2.5, z, _GLASS)
            canvas.wall(x - half * 0.55, x + half * 0.55, 2.6, 2.9, z, (250, 170, 40))
        elif thing.role is Role.ONCOMING:
            canvas.wall(x - half * 0.9, x + half * 0.9, 1.5, 2.4, z, _GLASS)
            canvas.wall(x - half * 0.6, x + half * 0.6, 0.6, 1.1, z, _CHROME)
        else:
            canvas.wall(x - half * 0.92, x - 0.06, 0.8, high - 0.15, z, dark)
            canvas.wall(x + 0.06, x + half * 0.92, 0.8, high - 0.15, z, dark)
    canvas.wall(x - half * 0.95, x - half * 0.5, 0.0, 0.3, z, _TYRE)
    canvas.wall(x + half * 0.5, x + half * 0.95, 0.0, 0.3, z, _TYRE)
    _lamps(canvas, thing, half * 0.78, 0.62)


def _lamps(canvas: Canvas, thing: Thing, apart: float, high: float) -> None:
    oncoming = thing.role is Role.ONCOMING
    is_dim = canvas.air.daylight is Daylight.DAY
    shines = thing.role is not Role.PARKED and not is_dim
    rgb = _HEAD if oncoming else ((190, 30, 30) if is_dim else _TAIL)
    radius = 0.2 if is_dim else (0.34 if oncoming else 0.24)
    for x in {thing.x - apart, thing.x + apart}:
        canvas.disc(x, high, thing.z, radius, rgb, glows=shines)


def _vehicle_from_the_side(canvas: Canvas, thing: Thing) -> None:
    rgb = PAINTS[thing.colour]
    x, z, half, high = thing.x, thing.z, thing.extent.across / 2, thing.extent.up
    # It faces away from the side it comes from.
    front = 1.0 if thing.side is Side.LEFT else -1.0

    def wall(start: float, stop: float, low: float, top: float, colour: Rgb) -> None:
        ends = sorted((x + front * start * half, x + front * stop * half))
        canvas.wall(ends[0], ends[1], low, top, z, colour)

    if thing.kind is Kind.CAR:
        wall(-1, 1, 0.28, 0.85, rgb)
        roof = [(x - 0.75 * half, 0.85, z), (x - 0.45 * half, high, z), (x + 0.4 * half, high, z)]
        canvas.face([*roof, (x + 0.7 * half, 0.85, z)], rgb)
        glass = [(x - 0.6 * half, 0.9, z), (x - 0.4 * half, high - 0.12, z)]
        canvas.face([*glass, (x + 0.35 * half, high - 0.12, z), (x + 0.52 * half, 0.9, z)], _GLASS)
        radius = 0.34
    elif thing.kind is Kind.BUS:
        wall(-1, 1, 0.45, high, rgb)
        for number in range(6):
            wall(-0.93 + 0.32 * number, -0.68 + 0.32 * number, 1.4, 2.4, _GLASS)
        radius = 0.5
    else:
        wall(-1, 0.55, 0.6, high, rgb)
        wall(0.62, 1, 0.5, 2.6, _CHROME)
        wall(0.78, 1, 1.5, 2.3, _GLASS)
        radius = 0.5
    for wheel in (-0.62, 0.64):
        canvas.disc(x + front * wheel * half, radius, z, radius, _TYRE)
    if canvas.air.daylight is not Daylight.DAY:
        canvas.disc(x + front * half, 0.65, z, 0.25, _HEAD, glows=True)
        canvas.disc(x - front * half, 0.65, z, 0.2, _TAIL, glows=True)


def _rider_or_walker(canvas: Canvas, thing: Thing) -> None:
    rgb, x, z = PAINTS[thing.colour], thing.x, thing.z
    across = thing.role is Role.CROSSING
    if thing.kind is Kind.PEDESTRIAN:
        swing = 0.22 * sin(thing.stride * 4.0) if thing.moves else 0.08
        legs = (48, 52, 72)
        for foot in (-swing, swing):
            canvas.face(
                [
                    (x - 0.1, 0.85, z),
                    (x + 0.1, 0.85, z),
                    (x + foot + 0.1, 0, z),
                    (x + foot - 0.1, 0, z),
                ],
                legs,
            )
        canvas.wall(x - 0.26, x + 0.26, 0.8, 1.45, z, rgb)
        canvas.disc(x, 1.6, z, 0.17, _SKIN)
        return
    is_motor = thing.kind is Kind.MOTORCYCLE
    wheel = 0.33 if is_motor else 0.35
    if across:
        for offset in (-0.6, 0.6):
            canvas.disc(x + offset, wheel, z, wheel, _TYRE)
            canvas.disc(x + offset, wheel, z, wheel * 0.6, _CHROME)
        canvas.wall(
            x - 0.6, x + 0.6, 0.45, 0.8 if is_motor else 0.58, z, rgb if is_motor else _TYRE
        )
    else:
        width = 0.16 if is_motor else 0.1
        canvas.wall(x - width, x + width, 0.0, 2 * wheel, z, _TYRE)
        handle = 0.42 if is_motor else 0.4
        canvas.wall(x - handle, x + handle, 0.95, 1.05, z, _TYRE)
        if is_motor:
            canvas.wall(x - 0.32, x + 0.32, 0.5, 1.0, z, rgb)
        else:
            canvas.wall(x - 0.2, x - 0.06, 0.35, 0.95, z, (48, 52, 72))
            canvas.wall(x + 0.06, x + 0.2, 0.35, 0.95, z, (48, 52, 72))
    if is_motor and thing.role is Role.PARKED:
        return
    canvas.wall(x - 0.25, x + 0.25, 0.85, 1.45, z, rgb)
    canvas.disc(x, 1.6, z, 0.2 if is_motor else 0.17, _TYRE if is_motor else _SKIN)
    if is_motor:
        _lamps(canvas, thing, 0.0, 0.8)
    elif canvas.air.daylight is Daylight.NIGHT:
        canvas.disc(x, 0.75, z, 0.1, _TAIL, glows=True)


def _darker(rgb: Rgb) -> Rgb:
    red, green, blue = (int(value * 0.68) for value in rgb)
    return red, green, blue
