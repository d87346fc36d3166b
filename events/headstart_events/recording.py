"""A recording of events: the port that every file format is read through.

Owns the promise to callers (windows, limits, one clock). Knows no file format.
"""

import io
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from struct import error as StructError  # noqa: N812 (struct names it in lower case)
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError, UnknownSensorError
from headstart.media.events import Events, SensorSize

Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

Content = bytes | memoryview | mmap

DEFAULT_MAX_EVENTS = 200_000_000


@dataclass(frozen=True)
class Opening:
    """What a caller states about a recording it opens.

    ``sensor`` is needed where the file does not state its size. ``max_events`` bounds every
    single read: an event takes 13 bytes, and about three times that while it is checked. With
    ``sort``, events that are out of time order are sorted instead of refused.

    With ``content`` no file is opened and no process started: the recording is those bytes, and
    ``path`` only names it. Without ``allow_pickle`` a pickled ``.npy`` is refused.
    """

    path: Path
    sensor: SensorSize | None = None
    max_events: int = DEFAULT_MAX_EVENTS
    sort: bool = False
    content: Content | None = None
    allow_pickle: bool = True

    def open(self) -> BinaryIO:
        """Open the recording's bytes as a file, which the caller closes."""
        if self.content is None:
            return self.path.open("rb")
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)  # shares the bytes
        return io.BufferedReader(_View(memoryview(self.content).cast("B")))

    @property
    def num_bytes(self) -> int:
        if self.content is None:
            return self.path.stat().st_size
        return memoryview(self.content).nbytes

    def resolve_sensor(self, stated: SensorSize | None) -> SensorSize:
        """The sensor's size that the file states, or the caller's; the two must not differ."""
        if stated and self.sensor and stated != self.sensor:
            raise MediaError(
                f"{self.path} says its sensor is {stated}, not {self.sensor}; leave the size out"
            )
        sensor = stated or self.sensor
        if sensor is None:
            raise UnknownSensorError(
                f"{self.path} does not say how large its sensor is; "
                "state it, as in --sensor 640x480"
            )
        return sensor

    def check_count(self, num_events: int) -> None:
        """Raise if a read would give more than ``max_events``; called before memory is taken."""
        if num_events > self.max_events:
            raise MediaError(
                f"{self.path} would give more than {self.max_events} events at once; "
                "read a shorter window, or raise max_events"
            )


class _View(io.RawIOBase):
    """A file over bytes that are in memory already, without copying them."""

    def __init__(self, content: memoryview) -> None:
        self._content, self._position = content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._content[self._position : self._position + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_CUR: self._position, io.SEEK_END: len(self._content)}
        self._position = starts.get(whence, 0) + offset
        if self._position < 0:
            raise ValueError("seek to before the start of the file")
        return self._position


class Recording(ABC):
    """An open recording. Times are the file's own, in microseconds.

    Not thread-safe: one reader at a time. Close it, or use it as a context manager.
    """

    opening: Opening
    format: str
    """The name of the file format, for people."""
    sensor: SensorSize
    num_events: int | None = None
    """How many events there are; None where that needs reading the whole file."""

    @abstractmethod
    def columns(self) -> Iterator[Columns]:
        """Yield x, y, t (int64 us) and p, unchecked, in pieces of bounded size."""

    def blocks(self) -> Iterator[Events]:
        """Yield all events from the start, in pieces of bounded size; may be called again.

        With ``sort`` all events are one piece.
        """
        with damage_reported(self.opening.path):
            if self.opening.sort:
                yield self._sorted()
                return
            last_us: int | None = None
            for x, y, t, p in self.columns():
                events = Events.checked(x, y, t, p, self.sensor)
                if not len(events):
                    continue
                if last_us is not None and events.t[0] < last_us:
                    raise MediaError(
                        f"times go back from {last_us} to {events.t[0]} us; "
                        "sort the events if that is meant"
                    )
                last_us = int(events.t[-1])
                yield events

    def read(self, start_us: int, stop_us: int) -> Events:
        """The events with ``start_us <= t < stop_us``."""
        return self._gather(_window(self.blocks(), start_us, stop_us))

    def read_all(self) -> Events:
        """Every event, at most ``max_events`` of them."""
        return self._gather(self.blocks())

    @property
    def first_us(self) -> int:
        for block in self.blocks():
            if len(block):
                return int(block.t[0])
        raise MediaError(f"{self.opening.path} has no events; choose another recording")

    def close(self) -> None:  # noqa: B027 (most formats hold nothing open)
        """Close what the recording holds open. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _sorted(self) -> Events:
        pieces: list[Columns] = []
        num_events = 0
        for piece in self.columns():
            num_events += len(piece[2])
            self.opening.check_count(num_events)
            pieces.append(piece)
        if not pieces:
            return Events.empty(self.sensor)
        x, y, t, p = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return Events.checked(x, y, t, p, self.sensor, sort=True)

    def _gather(self, blocks: Iterable[Events]) -> Events:
        pieces = [Events.empty(self.sensor)]
        num_events = 0
        for block in blocks:
            num_events += len(block)
            self.opening.check_count(num_events)
            pieces.append(block)
        return Events.concatenate(pieces)


class LoadedRecording(Recording):
    """A recording in memory, of a format that can only be read whole."""

    def __init__(self, opening: Opening, format: str, events: Events) -> None:
        self.opening, self.format = opening, format
        self.sensor, self.num_events = events.sensor, len(events)
        self._events = events

    def columns(self) -> Iterator[Columns]:
        yield self._events.x, self._events.y, self._events.t, self._events.p

    def blocks(self) -> Iterator[Events]:
        """Yield all events as one piece; they were checked when they were loaded."""
        yield self._events


def _window(blocks: Iterator[Events], start_us: int, stop_us: int) -> Iterator[Events]:
    for block in blocks:
        inside = block.between(start_us, stop_us)
        if len(inside):
            yield inside
        if len(block) and block.t[-1] >= stop_us:
            return


def not_installed(work: str, package: str | None) -> MediaError:
    """What to say where a package that reads or writes a format is not there."""
    return MediaError(
        f"{work} needs {package}, which is not installed: pip install 'headstart[events]'"
    )


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Turn what a decoder raises over damaged bytes into a `MediaError` that names the file."""
    try:
        yield
    except MediaError as error:
        if str(path) in str(error):
            raise
        raise MediaError(f"{path}: {error}") from error
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        NotImplementedError,
        OSError,
        RuntimeError,
        StructError,
        SyntaxError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise MediaError(
            f"{path} is damaged or not what its name says ({reason}); copy it again"
        ) from error
    except MemoryError as error:
        raise MediaError(
            f"{path} asks for more memory than there is; it may be damaged: copy it again"
        ) from error
