"""The canvas: paints flat polygons and discs, placed in metres, at twice the size."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from headstart_lab.world.air import Air, Rgb
from headstart_lab.world.camera import NEAR_M, Camera, Point

FINENESS = 2
"""The picture is painted this much larger and then reduced, for anti-aliased edges."""


class Canvas:
    """The picture while it is painted; later shapes cover earlier ones."""

    def __init__(self, camera: Camera, air: Air) -> None:
        self.camera, self.air = camera, air
        self.width, self.height = camera.size.width, camera.size.height
        self._image = Image.new("RGB", (self.width * FINENESS, self.height * FINENESS), air.sky)
        self._draw = ImageDraw.Draw(self._image)

    def face(self, points: list[Point], rgb: Rgb, glows: bool = False) -> None:
        """A flat polygon in the world."""
        pixels = self.camera.outline(points)
        if len(pixels) < 3:
            return
        columns = [column for column, _ in pixels]
        if max(columns) < 0 or min(columns) > self.width:
            return
        distance = sum(point[2] for point in points) / len(points)
        self.flat(pixels, self.air.arrive(rgb, distance, glows))

    def wall(
        self,
        left: float,
        right: float,
        bottom: float,
        top: float,
        z: float,
        rgb: Rgb,
        glows: bool = False,
    ) -> None:
        """A rectangle that faces the camera."""
        points = [(left, bottom, z), (right, bottom, z), (right, top, z), (left, top, z)]
        self.face(points, rgb, glows)

    def disc(
        self, x: float, y: float, z: float, radius: float, rgb: Rgb, glows: bool = False
    ) -> None:
        """A disc that faces the camera; a lamp (``glows``) is at least two pixels wide."""
        turned = self.camera.turned((x, y, z))
        if turned[2] < NEAR_M:
            return
        column, row = self.camera.pixel(turned)
        size = self.camera.focal_px * radius / turned[2]
        size = max(size, 1.0) if glows else size
        box = [(value + sign * size) * FINENESS for sign in (-1, 1) for value in (column, row)]
        self._draw.ellipse(box, fill=self.air.arrive(rgb, z, glows))

    def flat(self, pixels: list[tuple[float, float]], rgb: Rgb) -> None:
        """A polygon in pixels; its colour is not changed by distance or light."""
        self._draw.polygon([(c * FINENESS, r * FINENESS) for c, r in pixels], fill=rgb)

    def streak(self, column: float, row: float, length: float, rgb: Rgb) -> None:
        """A drop of rain."""
        start = (column * FINENESS, row * FINENESS)
        self._draw.line([start, (start[0] - 2, start[1] + length * FINENESS)], fill=rgb, width=1)

    def picture(self) -> NDArray[np.uint8]:
        """uint8 [height, width, 3]."""
        return np.asarray(self._image.reduce(FINENESS), dtype=np.uint8)
