"""The events of an event camera, as four arrays and the size of the sensor.

x goes to the right, y downwards, t is in microseconds and never decreases, p is true where the
pixel became brighter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.digests import digest_arrays

MAX_SIDE = 65_536
MAX_TIME_US = 2**62
"""The largest time, positive or negative: the difference of any two then fits 64 bits."""
ENTRY_POINTS = "headstart.event_files"
"""The group under which a package registers what opens recordings: a function that takes a path and
the sensor's size, and returns a `Recording`."""


@dataclass(frozen=True)
class SensorSize:
    """Pixels across and down."""

    width: int
    height: int

    def __post_init__(self) -> None:
        if not (1 <= self.width <= MAX_SIDE and 1 <= self.height <= MAX_SIDE):
            raise MediaError(
                f"no sensor is {self.width}x{self.height}; "
                f"give a width and a height of 1 to {MAX_SIDE}, such as 640x480"
            )

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"

    @classmethod
    def parse(cls, text: str) -> SensorSize:
        """The size written as ``640x480``."""
        width, _, height = text.lower().partition("x")
        # isdecimal also admits other scripts' digits; the length keeps int() cheap.
        if not (width.isdecimal() and height.isdecimal() and len(text) <= 16):
            raise MediaError(f"{text!r} is not a sensor size; write it as 640x480")
        return cls(int(width), int(height))


@dataclass(frozen=True, eq=False)
class Events:
    """Events in time order. `checked` builds them from data of unknown quality.

    ``x`` and ``y`` are uint16, ``t`` int64 microseconds, ``p`` bool (true: brighter), all [n].
    """

    x: NDArray[np.uint16]
    y: NDArray[np.uint16]
    t: NDArray[np.int64]
    p: NDArray[np.bool_]
    sensor: SensorSize

    def __post_init__(self) -> None:
        for name, dtype in (("x", np.uint16), ("y", np.uint16), ("t", np.int64), ("p", np.bool_)):
            column = getattr(self, name)
            if column.dtype != dtype or column.ndim != 1 or len(column) != len(self.t):
                raise MediaError(
                    f"column {name} is {column.dtype} {list(column.shape)} beside {len(self.t)} "
                    "times; build events with Events.checked"
                )

    @classmethod
    def checked(
        cls,
        x: NDArray[Any],
        y: NDArray[Any],
        t: NDArray[Any],
        p: NDArray[Any],
        sensor: SensorSize,
        sort: bool = False,
    ) -> Events:
        """Build events from integer columns, and check every value.

        Polarity may be bool or 0/1. Times out of order are an error, since they usually mean a
        clock that wrapped or swapped columns. With ``sort`` they are sorted instead, and equal
        times keep their order.
        """
        columns = {"x": np.asarray(x), "y": np.asarray(y), "t": np.asarray(t), "p": np.asarray(p)}
        for name, column in columns.items():
            if column.ndim != 1 or column.dtype.kind not in "iub":
                raise MediaError(
                    f"column {name} is {column.dtype} {list(column.shape)}; "
                    "give one integer per event"
                )
        if len({len(column) for column in columns.values()}) != 1:
            lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
            raise MediaError(f"the columns differ in length ({lengths}); give one row per event")
        _check_range("x", columns["x"], sensor.width, f"the sensor is {sensor}")
        _check_range("y", columns["y"], sensor.height, f"the sensor is {sensor}")
        _check_range("p", columns["p"], 2, "polarity is 0 (darker) or 1 (brighter)")
        _check_range("t", columns["t"], MAX_TIME_US, "times are microseconds", -MAX_TIME_US)
        times = columns["t"].astype(np.int64, copy=False)
        ordered = bool(np.all(times[1:] >= times[:-1]))
        if not ordered and not sort:
            step = int(np.argmax(times[1:] < times[:-1]))
            raise MediaError(
                f"times go back from {times[step]} to {times[step + 1]} us at event {step + 1}; "
                "sort the events if that is meant"
            )
        order = slice(None) if ordered else np.argsort(times, kind="stable")
        return cls(
            columns["x"].astype(np.uint16, copy=False)[order],
            columns["y"].astype(np.uint16, copy=False)[order],
            times[order],
            columns["p"].astype(np.bool_, copy=False)[order],
            sensor,
        )

    @classmethod
    def empty(cls, sensor: SensorSize) -> Events:
        nothing = np.empty(0, dtype=np.uint16)
        return cls(nothing, nothing, nothing.astype(np.int64), nothing.astype(np.bool_), sensor)

    @classmethod
    def concatenate(cls, pieces: Sequence[Events]) -> Events:
        """Join pieces of one stream, given in order of time."""
        if not pieces:
            raise MediaError("nothing to concatenate; give at least one piece of events")
        if len({piece.sensor for piece in pieces}) != 1:
            raise MediaError("pieces of different sensors; concatenate events of one sensor")
        filled = [piece for piece in pieces if len(piece)]
        if len(filled) <= 1:
            return filled[0] if filled else pieces[0]
        for before, after in pairwise(filled):
            if after.t[0] < before.t[-1]:
                raise MediaError(
                    f"a piece starts at {after.t[0]} us, before {before.t[-1]} us where the one "
                    "before it ends; give the pieces in order"
                )
        return cls(
            np.concatenate([piece.x for piece in filled]),
            np.concatenate([piece.y for piece in filled]),
            np.concatenate([piece.t for piece in filled]),
            np.concatenate([piece.p for piece in filled]),
            pieces[0].sensor,
        )

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, part: slice) -> Events:
        return Events(self.x[part], self.y[part], self.t[part], self.p[part], self.sensor)

    @property
    def duration_us(self) -> int:
        """The time from the first event to the last; 0 without events."""
        return int(self.t[-1] - self.t[0]) if len(self) else 0

    def between(self, start_us: int, stop_us: int) -> Events:
        """The events with ``start_us <= t < stop_us``, without copying."""
        start, stop = np.searchsorted(self.t, [start_us, stop_us])
        return self[int(start) : max(int(start), int(stop))]

    def shifted(self, offset_us: int) -> Events:
        if len(self) and max(abs(self.t[0] + offset_us), abs(self.t[-1] + offset_us)) > MAX_TIME_US:
            raise MediaError(f"an offset of {offset_us} us is too large; give it in microseconds")
        return Events(self.x, self.y, self.t + offset_us, self.p, self.sensor)

    def digest(self) -> str:
        """A digest of the content: equal for equal events of an equal sensor."""
        size = np.array([self.sensor.width, self.sensor.height], dtype=np.int64)
        return digest_arrays("events", size, self.x, self.y, self.t, self.p)


def _check_range(name: str, column: NDArray[Any], stop: int, why: str, start: int = 0) -> None:
    if not len(column):
        return
    low, high = int(column.min()), int(column.max())
    if low < start or high >= stop:
        raise MediaError(
            f"{name} runs from {low} to {high} and must lie in {start} to {stop - 1}: {why}; "
            "check the columns' order and the sensor size"
        )


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
