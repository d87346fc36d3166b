"""How colours change between a thing and the camera: daylight, headlights, fog."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import exp

from headstart_lab.world.kinds import Daylight, Weather

Rgb = tuple[int, int, int]


class Eye(Enum):
    """Which camera: the colour camera, or the event camera with its larger dynamic range."""

    FRAMES = "frames"
    EVENTS = "events"


_SKY = {Daylight.DAY: (150, 190, 230), Daylight.DUSK: (205, 140, 105), Daylight.NIGHT: (52, 58, 86)}
_TINT = {Daylight.DAY: (1.0, 1.0, 1.0), Daylight.DUSK: (0.72, 0.58, 0.55)}
_NIGHT_TINT = (0.55, 0.58, 0.7)
_REACH_M = {Weather.CLEAR: 500.0, Weather.RAIN: 130.0, Weather.FOG: 24.0}
_GREY = {Weather.CLEAR: 0.0, Weather.RAIN: 0.55, Weather.FOG: 0.9}


@dataclass(frozen=True)
class Air:
    """The weather and the light, for one camera."""

    weather: Weather
    daylight: Daylight
    eye: Eye

    @cached_property
    def is_dark(self) -> bool:
        """Whether the camera sees little but lamps and what headlights reach."""
        return self.daylight is Daylight.NIGHT and self.eye is Eye.FRAMES

    @cached_property
    def sky(self) -> Rgb:
        """The colour of the sky, and of what is far away."""
        grey = {Daylight.DAY: 190, Daylight.DUSK: 125, Daylight.NIGHT: 62}[self.daylight]
        share = _GREY[self.weather]
        if self.is_dark:
            grey, clear = 20, (10, 11, 20)
        else:
            clear = _SKY[self.daylight]
        return _mix(clear, (grey, grey, grey + 4), share)

    def arrive(self, rgb: Rgb, distance_m: float, glows: bool = False) -> Rgb:
        """A colour as seen from a distance; a lamp (``glows``) needs no light."""
        if not glows:
            red, green, blue = rgb
            if self.daylight is Daylight.NIGHT:
                tint = _NIGHT_TINT
                if self.is_dark:
                    light = 0.1 + 0.95 * exp(-((max(distance_m, 0.0) / 20.0) ** 2))
                    tint = (light, light * 0.97, light * 0.9)
            else:
                tint = _TINT[self.daylight]
            rgb = (int(red * tint[0]), int(green * tint[1]), int(blue * tint[2]))
        clear = exp(-max(distance_m, 0.0) / _REACH_M[self.weather])
        if glows:
            clear = clear**0.4
        return _mix(self.sky, rgb, clear)


def _mix(first: Rgb, second: Rgb, share: float) -> Rgb:
    red, green, blue = (int(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue
