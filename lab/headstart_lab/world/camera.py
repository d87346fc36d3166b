"""The pinhole camera behind the windscreen: from metres on the road to pixels.

Road coordinates: x metres to the right of the road's centre line, y up, z along the road from
the car. A bend is a sideways shift that grows with the square of the distance.
"""

from dataclasses import dataclass
from functools import cached_property
from math import cos, sin

from headstart.media.events import SensorSize

Point = tuple[float, float, float]

NEAR_M = 0.8
HEIGHT_M = 1.5


@dataclass(frozen=True)
class Camera:
    """Where the camera is and looks, and its picture's size."""

    size: SensorSize
    x: float
    yaw: float
    curvature: float
    bob_px: float
    sway_px: float

    @cached_property
    def focal_px(self) -> float:
        """Pixels a metre takes at a distance of one metre."""
        return 0.95 * self.size.width

    @cached_property
    def horizon_px(self) -> float:
        """The row of the horizon."""
        return 0.44 * self.size.height + self.bob_px

    @cached_property
    def _direction(self) -> tuple[float, float]:
        return cos(self.yaw), sin(self.yaw)

    def turned(self, point: Point) -> Point:
        """In the camera's own axes: right, up, forward."""
        x, y, z = point
        x += 0.5 * self.curvature * z * z - self.x
        cosine, sine = self._direction
        return x * cosine - z * sine, y - HEIGHT_M, x * sine + z * cosine

    def pixel(self, turned: Point) -> tuple[float, float]:
        """The pixel of a point in front of the camera, given in the camera's axes."""
        x, y, z = turned
        column = self.size.width / 2 + self.sway_px + self.focal_px * x / z
        return column, self.horizon_px - self.focal_px * y / z

    def outline(self, points: list[Point]) -> list[tuple[float, float]]:
        """A polygon in pixels, cut where it passes the camera; empty if it lies behind."""
        turned = [self.turned(point) for point in points]
        if all(point[2] >= NEAR_M for point in turned):
            return [self.pixel(point) for point in turned]
        kept: list[Point] = []
        for here, there in zip(turned, [*turned[1:], turned[0]], strict=True):
            if here[2] >= NEAR_M:
                kept.append(here)
            if (here[2] >= NEAR_M) != (there[2] >= NEAR_M):
                share = (NEAR_M - here[2]) / (there[2] - here[2])
                x, y = (here[i] + share * (there[i] - here[i]) for i in (0, 1))
                kept.append((x, y, NEAR_M))
        return [self.pixel(point) for point in kept]
