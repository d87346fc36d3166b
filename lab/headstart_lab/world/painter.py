"""Painting a scene: the ground, then everything on it from far to near, then the weather."""

from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np
from numpy.typing import NDArray

from headstart_lab.world.air import Air, Eye
from headstart_lab.world.canvas import Canvas
from headstart_lab.world.figures import paint_signal, paint_thing
from headstart_lab.world.kinds import Daylight, Weather
from headstart_lab.world.scene import Scene
from headstart_lab.world.scenery import paint_ground, roadside

NUM_DROPS = 70
NOISE_STEP = 5


def render(scene: Scene, eye: Eye = Eye.FRAMES) -> NDArray[np.uint8]:
    """The scene as RGB uint8 [height, width, 3], as one of the two cameras sees it.

    At night the colour camera's picture is dark and grainy. The event camera's is neither, since
    its dynamic range is larger; its noise comes from the event simulator.
    """
    canvas = Canvas(scene.camera, Air(scene.weather, scene.daylight, eye))
    paint_ground(canvas, scene)
    strokes: list[tuple[float, Callable[[], None]]] = roadside(canvas, scene)
    for thing in scene.things:
        strokes.append((thing.z, partial(paint_thing, canvas, thing)))
    if scene.signal is not None:
        strokes.append((scene.signal.z, partial(paint_signal, canvas, scene.signal, scene.road)))
    for _, stroke in sorted(strokes, key=lambda stroke: -stroke[0]):
        stroke()
    if scene.weather is Weather.RAIN:
        _rain(canvas, scene)
    picture = canvas.picture()
    if eye is Eye.FRAMES and scene.daylight is Daylight.NIGHT:
        return _grain(picture, scene.time_us)
    return picture


def _rain(canvas: Canvas, scene: Scene) -> None:
    """Each drop falls at a speed of its own, and starts again at the top."""
    seconds = scene.time_us / 1e6
    random = Random(7)
    rgb = canvas.air.arrive((215, 220, 235), 4.0)
    for _ in range(NUM_DROPS):
        column, phase, speed = random.random(), random.random(), random.uniform(1.6, 2.6)
        row = (phase + seconds * speed) % 1.0
        shift = int(phase + seconds * speed) * 0.37
        canvas.streak((column + shift) % 1.0 * canvas.width, row * canvas.height, 7.0, rgb)


def _grain(picture: NDArray[np.uint8], time_us: int) -> NDArray[np.uint8]:
    random = np.random.default_rng(time_us)
    # Coarse steps look grainy and still compress well.
    grain = random.integers(-1, 2, picture.shape[:2], dtype=np.int16) * NOISE_STEP
    grainy = np.clip(picture.astype(np.int16) + grain[..., None], 0, 255)
    return grainy.astype(np.uint8)
