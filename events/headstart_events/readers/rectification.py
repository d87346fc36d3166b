"""DSEC's ``rectify_map.h5``: where each pixel lies once the lens distortion is removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import Events
from headstart_events.readers.hdf5_client import CLIENT
from headstart_events.recording import damage_reported


@dataclass(frozen=True, eq=False)
class RectifyMap:
    """float32 [height, width, 2]: the rectified x and y of each pixel."""

    places: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.places.ndim != 3 or self.places.shape[2] != 2:
            raise MediaError(f"a rectify map is [height, width, 2], not {list(self.places.shape)}")

    @classmethod
    def read(cls, path: str | Path) -> RectifyMap:
        """Read a file in DSEC's layout."""
        if not Path(path).is_file():
            raise MediaError(f"{path} is not a file; check the path")
        with damage_reported(Path(path)):
            places = cls(CLIENT.rectify_map(Path(path)))
            CLIENT.close_file(Path(path))
            return places

    def apply(self, events: Events) -> Events:
        """Move events to their rectified pixels, rounded, and drop those outside the sensor."""
        size = (events.sensor.height, events.sensor.width)
        if self.places.shape[:2] != size:
            raise MediaError(
                f"the map is of {self.places.shape[1]}x{self.places.shape[0]} and the events of "
                f"{events.sensor}; take both of the same sensor"
            )
        x, y = np.rint(self.places[events.y, events.x]).T
        inside = (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])
        return Events(
            x[inside].astype(np.uint16),
            y[inside].astype(np.uint16),
            events.t[inside],
            events.p[inside],
            events.sensor,
        )
