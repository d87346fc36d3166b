"""CSV whose first line names the columns t (us), x, y and p, in any order.

The names may state the sensor's size, as in ``t,x@640,y@480,p``.
"""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import numpy as np

from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.recording import Columns, Opening, Recording

MAX_LINE_BYTES = 4096
BLOCK_LINES = 65_536
MAX_BLANK_LINES = 1000
ALIASES = {"timestamp": "t", "on": "p", "polarity": "p"}


def open_csv(opening: Opening) -> Recording:
    with opening.open() as file:
        names = next(_lines(file), "")
    return CsvRecording(opening, names)


class CsvRecording(Recording):
    """A CSV file, parsed a block of lines at a time."""

    def __init__(self, opening: Opening, names: str) -> None:
        self.opening, self.format = opening, "CSV"
        places: dict[str, int] = {}
        sides: dict[str, str] = {}
        for place, written in enumerate(names.strip().split(",")):
            name, _, side = written.strip().strip('"').lower().partition("@")
            places[ALIASES.get(name, name)] = place
            sides[name] = side
        if not {"t", "x", "y", "p"} <= places.keys():
            raise MediaError(
                f"its first line is {names.strip()[:60]!r}; name the columns there, as t,x,y,p"
            )
        self._places = [places[name] for name in "xytp"]
        stated = None
        if sides.get("x") and sides.get("y"):
            stated = SensorSize.parse(f"{sides['x']}x{sides['y']}")
        self.sensor = opening.resolve_sensor(stated)

    def columns(self) -> Iterator[Columns]:
        with self.opening.open() as file:
            lines = _lines(file)
            next(lines, None)
            while block := list(islice(lines, BLOCK_LINES)):
                filled = [line for line in block if not line.isspace()]
                if len(block) > 2 * len(filled) + MAX_BLANK_LINES:
                    raise MediaError("most of its lines are blank; it is damaged: copy it again")
                if not filled:
                    continue
                table = np.loadtxt(
                    filled,
                    dtype=np.int64,
                    delimiter=",",
                    comments=None,
                    usecols=self._places,
                    ndmin=2,
                )
                x, y, t, p = table.T
                yield x, y, t, p


def _lines(file: BinaryIO) -> Iterator[str]:
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) == MAX_LINE_BYTES:
            raise MediaError("it has a line that is too long for a table of events")
        yield line.decode("ascii")
