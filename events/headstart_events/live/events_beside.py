"""Events beside a source's frames: recorded with them, or simulated from them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from headstart.live.sources.source import Arrival, Source, SourceCounts
from headstart.media.events import Events, SensorSize
from headstart_events.readers.opening import open_recording
from headstart_events.recording import Recording
from headstart_events.simulation import SensorModel, Simulator

SIMULATED_SIDE = 160
"""Frames are shrunk to at most so many pixels across before events are simulated: a few
milliseconds a frame, whatever its size."""
MAX_EVENTS = 4_000_000
"""Of one arrival; where there were more, the newest are kept."""


class SmallSimulator:
    """Simulates the events between frames of any size, shrunk first. Not thread-safe."""

    def __init__(self) -> None:
        self._simulator: Simulator | None = None

    def see(self, time_us: int, frame: NDArray[np.uint8]) -> Events:
        """The events since the frame before; none after the first, or after one of another size."""
        small = _shrunk(frame)
        sensor = SensorSize(small.shape[1], small.shape[0])
        if self._simulator is None or self._simulator.sensor != sensor:
            self._simulator = Simulator(sensor, SensorModel.ideal())
        return self._simulator.see(time_us, small)


class WrappedSource:
    """Another source in everything but its arrivals."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def counts(self) -> SourceCounts:
        return self._source.counts

    def close(self) -> None:
        self._source.close()


class SimulatedEvents(WrappedSource):
    """Gives each arrival the events that an event camera would have seen since the one before."""

    def arrivals(self) -> Iterator[Arrival]:
        simulator = SmallSimulator()
        for arrival in self._source.arrivals():
            yield replace(arrival, events=simulator.see(arrival.time_us, arrival.frame))


class RecordedEvents(WrappedSource):
    """Gives each arrival the events that a recording has since the one before."""

    def __init__(
        self,
        source: Source,
        recording: str | Path,
        *,
        offset_us: int = 0,
        sensor: SensorSize | None = None,
    ) -> None:
        super().__init__(source)
        self._path, self._offset_us, self._sensor = recording, offset_us, sensor
        with self._open():
            pass  # what cannot be opened is said now

    def arrivals(self) -> Iterator[Arrival]:
        """Yield the source's arrivals with events; the recording is read once, from its start."""
        with self._open() as recording:
            reader = _Reader(recording, self._offset_us)
            last_us: int | None = None
            for arrival in self._source.arrivals():
                events = reader.until(arrival.time_us, since_us=last_us)
                yield replace(arrival, events=events)
                last_us = arrival.time_us

    def _open(self) -> Recording:
        return open_recording(self._path, sensor=self._sensor)


class _Reader:
    """Reads a recording in order, a block at a time."""

    def __init__(self, recording: Recording, offset_us: int) -> None:
        self._blocks = recording.blocks()
        self._left = Events.empty(recording.sensor)
        self._offset_us = offset_us

    def until(self, stop_us: int, since_us: int | None) -> Events:
        """The events up to a time; of those before ``since_us`` none."""
        stop_us -= self._offset_us
        pieces, num_events = [self._left[:0]], 0
        while True:
            num_before = int(np.searchsorted(self._left.t, stop_us))
            piece, self._left = self._left[:num_before], self._left[num_before:]
            pieces.append(piece)
            num_events += len(piece)
            while num_events - len(pieces[0]) > MAX_EVENTS:
                num_events -= len(pieces.pop(0))
            if len(self._left):
                break
            block = next(self._blocks, None)
            if block is None:
                break
            self._left = block
        events = Events.concatenate(pieces)[-MAX_EVENTS:]
        start_us = stop_us if since_us is None else since_us - self._offset_us
        return events.between(start_us, stop_us).shifted(self._offset_us)


def with_events(
    source: Source,
    recording: str | Path,
    *,
    offset_us: int = 0,
    sensor: SensorSize | None = None,
) -> Source:
    """The source with the events of a recording beside it.

    ``offset_us`` is added to the recording's times to get the source's, which count from its first
    frame.
    """
    return RecordedEvents(source, recording, offset_us=offset_us, sensor=sensor)


def simulated(source: Source) -> Source:
    """The source with events simulated from its frames."""
    return SimulatedEvents(source)


def _shrunk(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    factor = -(-max(frame.shape[:2]) // SIMULATED_SIDE)
    if factor == 1:
        return frame
    return np.asarray(PIL.Image.fromarray(frame).reduce(factor))
