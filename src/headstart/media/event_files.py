"""Opens recordings of events, with the package that knows their formats."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, Self

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize

ENTRY_POINTS = "headstart.event_files"
"""The group under which a package registers what opens recordings: a function that takes a path and
the sensor's size, and returns a `Recording`."""


class Recording(Protocol):
    """An open recording of events, in order. Not thread-safe."""

    @property
    def first_us(self) -> int:
        """The time of the first event."""

    def read(self, start_us: int, stop_us: int) -> Events:
        """The events from one time up to another."""

    def read_all(self) -> Events:
        """All of its events."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def open_recording(path: str | Path, sensor: SensorSize | None = None) -> Recording:
    """Open a recording of any format that an installed package reads."""
    for found in entry_points(group=ENTRY_POINTS):
        recording: Recording = found.load()(path, sensor)
        return recording
    raise MediaError(
        f"{path} is a recording of events, and nothing here reads one: pip install"
        " 'headstart[events]'"
    )
