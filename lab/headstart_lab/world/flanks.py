"""Paints what stands beside the road: houses, trees, fences."""

from collections.abc import Callable
from random import Random

from headstart_lab.world.air import Rgb
from headstart_lab.world.canvas import Canvas
from headstart_lab.world.kinds import Flank

_WINDOW, _LIT = (70, 84, 104), (250, 216, 130)
_FACADES = ((176, 120, 96), (196, 178, 150), (150, 140, 132), (206, 196, 180), (168, 104, 84))
_PLASTER = ((222, 210, 186), (206, 178, 152), (190, 198, 206), (226, 222, 214))
_ROOF, _TRUNK, _LEAVES = (146, 70, 52), (92, 70, 50), ((52, 104, 48), (66, 122, 54), (44, 90, 56))


def _building(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    rgb = random.choice(_FACADES)
    height, length = random.uniform(8.0, 16.0), 11.0
    far = x + (9.0 if x > 0 else -9.0)
    canvas.wall(min(x, far), max(x, far), 0.0, height, z, _shaded(rgb))
    canvas.face([(x, 0, z), (x, height, z), (x, height, z + length), (x, 0, z + length)], rgb)
    if z > 55.0:
        return
    for floor in range(int(height / 3.2)):
        low = 1.0 + floor * 3.2
        for column in range(3):
            shines = lit and random.random() < 0.45
            start = z + 1.2 + column * 3.3
            pane = [(x, low, start), (x, low + 1.6, start), (x, low + 1.6, start + 1.6),
                    (x, low, start + 1.6)]  # fmt: skip
            canvas.face(pane, _LIT if shines else _WINDOW, glows=shines)


def _house(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    rgb = random.choice(_PLASTER)
    out = 1.0 if x > 0 else -1.0
    x, far, length = x + 1.5 * out, x + 8.5 * out, 8.0
    canvas.wall(min(x, far), max(x, far), 0.0, 3.4, z, _shaded(rgb))
    canvas.face([(x, 0, z), (x, 3.4, z), (x, 3.4, z + length), (x, 0, z + length)], rgb)
    ridge = (x + far) / 2
    canvas.face([(x, 3.4, z), (far, 3.4, z), (ridge, 6.0, z)], _ROOF)
    canvas.face(
        [(x, 3.4, z), (ridge, 6.0, z), (ridge, 6.0, z + length), (x, 3.4, z + length)], _ROOF
    )
    shines = lit and random.random() < 0.5
    for column in range(2):
        start = z + 1.0 + 3.6 * column
        pane = [(x, 1.1, start), (x, 2.4, start), (x, 2.4, start + 1.8), (x, 1.1, start + 1.8)]
        canvas.face(pane, _LIT if shines else _WINDOW, glows=shines)


def _tree(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    out = 1.0 if x > 0 else -1.0
    x += out * random.uniform(-0.5, 2.5)
    height = random.uniform(4.5, 7.5)
    canvas.wall(x - 0.22, x + 0.22, 0.0, height * 0.5, z, _TRUNK)
    rgb = random.choice(_LEAVES)
    canvas.disc(x, height * 0.62, z, height * 0.32, rgb)
    canvas.disc(x - 0.5, height * 0.78, z, height * 0.2, _shaded(rgb, 1.18))


def _field(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    out = 1.0 if x > 0 else -1.0
    rgb = random.choice(((196, 176, 86), (150, 168, 74), (128, 152, 66)))
    far = x + out * 45.0
    canvas.face(
        [(x - out * 2, 0, z), (far, 0, z), (far, 0, z + 5.0), (x - out * 2, 0, z + 5.0)], rgb
    )


def _rock(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    out = 1.0 if x > 0 else -1.0
    x -= out * 2.5
    height, lean = random.uniform(4.0, 8.0), out * random.uniform(0.5, 2.0)
    grey = random.randrange(100, 150)
    rgb = (grey, grey - 8, grey - 18)
    far = x + out * 9.0
    canvas.wall(min(x, far), max(x, far), 0.0, height, z, _shaded(rgb))
    canvas.face(
        [(x, 0, z), (x + lean, height, z), (x + lean, height * 0.9, z + 6), (x, 0, z + 6)], rgb
    )
    crack = z + random.uniform(1, 4)
    canvas.face([(x, 0.5, crack), (x + lean * 0.6, height * 0.6, crack), (x, 0.5, crack + 0.6)],
                _shaded(rgb, 0.5))  # fmt: skip


def _fence(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    x -= 2.5 if x > 0 else -2.5
    canvas.wall(x - 0.12, x + 0.12, 0.0, 1.3, z, (128, 96, 66))
    for low in (0.45, 0.95):
        rail = [(x, low, z), (x, low + 0.22, z), (x, low + 0.22, z + 3.5), (x, low, z + 3.5)]
        canvas.face(rail, (146, 112, 78))


def _hedge(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    out = 1.0 if x > 0 else -1.0
    x -= out * 1.0
    rgb = random.choice(((48, 92, 44), (58, 104, 50)))
    height = random.uniform(1.5, 1.9)
    far = x + out * 1.4
    canvas.wall(min(x, far), max(x, far), 0.0, height, z, _shaded(rgb))
    canvas.face([(x, 0, z), (x, height, z), (x, height, z + 5), (x, 0, z + 5)], rgb)


def _lamp(canvas: Canvas, x: float, z: float, random: Random, lit: bool) -> None:
    x -= 3.5 if x > 0 else -3.5
    arm = x - (1.6 if x > 0 else -1.6)
    canvas.wall(x - 0.12, x + 0.12, 0.0, 6.5, z, (96, 98, 104))
    canvas.wall(min(x, arm), max(x, arm), 6.3, 6.5, z, (96, 98, 104))
    canvas.disc(arm, 6.2, z, 0.3, _LIT if lit else (210, 212, 214), glows=lit)


def _shaded(rgb: Rgb, share: float = 0.72) -> Rgb:
    red, green, blue = (min(255, int(value * share)) for value in rgb)
    return red, green, blue


Painting = Callable[[Canvas, float, float, Random, bool], None]

FLANKS: dict[Flank, tuple[float, Painting]] = {
    Flank.BUILDINGS: (12.0, _building),
    Flank.HOUSES: (13.0, _house),
    Flank.TREES: (7.0, _tree),
    Flank.FIELD: (10.0, _field),
    Flank.ROCKS: (6.0, _rock),
    Flank.FENCE: (3.5, _fence),
    Flank.HEDGE: (5.0, _hedge),
    Flank.LAMPS: (16.0, _lamp),
}
"""The distance between two pieces, and the function that paints one."""
