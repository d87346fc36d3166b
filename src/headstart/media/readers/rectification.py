"""DSEC's ``rectify_map.h5``: where each pixel of the sensor lies once the lens is undone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.events import MAX_SIDE, Events
from headstart.media.readers.dsec import BLOSC, check_blosc_chunk, filters_of
from headstart.media.recording import damage_reported

MAX_PIXELS = 1 << 25


@dataclass(frozen=True, eq=False)
class RectifyMap:
    """float32 [height, width, 2]: the rectified x and y of each pixel."""

    places: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.places.ndim != 3 or self.places.shape[2] != 2:
            raise MediaError(f"a rectify map is [height, width, 2], not {list(self.places.shape)}")

    @classmethod
    def read(cls, path: str | Path) -> RectifyMap:
        """From a file in DSEC's layout."""
        try:
            import h5py
            import hdf5plugin  # noqa: F401 (registers Blosc)
        except ImportError as error:
            raise MediaError(
                f"reading HDF5 needs {error.name}, which is not installed: "
                "pip install 'headstart[events]'"
            ) from error
        if not Path(path).is_file():
            raise MediaError(f"{path} is not a file; check the path")
        with damage_reported(Path(path)), h5py.File(path, "r") as file:
            link = file.get("rectify_map", getlink=True) if "rectify_map" in file else None
            dataset = file["rectify_map"] if isinstance(link, h5py.HardLink) else None
            if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind != "f":
                raise MediaError("it has no rectify_map of numbers; choose DSEC's rectify_map.h5")
            if filters_of(dataset) not in ([], [BLOSC]) or dataset.is_virtual or dataset.external:
                raise MediaError("its rectify_map is packed; repack it, as with h5repack -f NONE")
            if dataset.size > 2 * MAX_PIXELS or max(dataset.shape, default=0) > MAX_SIDE:
                raise MediaError(f"its rectify_map has the shape {dataset.shape}; copy it again")
            if filters_of(dataset):
                for part in dataset.iter_chunks():
                    check_blosc_chunk(dataset, tuple(side.start for side in part))
            return cls(dataset[()].astype(np.float32))

    def apply(self, events: Events) -> Events:
        """The events at their rectified pixels, rounded; those that leave the sensor are lost."""
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
