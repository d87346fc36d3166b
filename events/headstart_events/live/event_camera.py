"""An event camera beside a source of frames, through the package `neuromorphic-drivers`."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headstart.errors import HeadstartError, SourceError
from headstart.live.sources.reconnecting import BackOff
from headstart.live.sources.source import Arrival, Source
from headstart.media.events import MAX_TIME_US, Events, SensorSize
from headstart_events.live.events_beside import WrappedSource

MAX_EVENTS = 4_000_000
"""That wait for the next frame; where there are more, the oldest go."""
MAX_APART_US = 1_000_000
_LOOK_S = 0.1

logger = logging.getLogger(__name__)

Packets = Callable[[threading.Event], Iterator[Events]]
"""Opens a camera and yields its events on its own clock, until the event given is set."""


def event_camera(source: Source) -> Source:
    """The source with the events of the event camera that is plugged in."""
    driver = _driver()
    try:
        devices = driver.list_devices()
    except (OSError, RuntimeError) as error:
        raise SourceError(f"USB cannot be read ({error}); {_HOW_TO}") from error
    if not devices:
        raise SourceError(f"there is no event camera; {_HOW_TO}")
    return LiveEvents(source, _read_device)


class LiveEvents(WrappedSource):
    """Gives each arrival the events that came since the one before; None while there are none to
    be had, because the event camera is lost.

    One rule aligns the clocks: the newest event known at the first arrival has that arrival's
    time, and again whenever the two have come to lie a second apart.
    """

    def __init__(self, source: Source, packets: Packets) -> None:
        super().__init__(source)
        self._packets = packets
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._waiting: deque[Events] = deque()
        self._num_waiting = 0
        self._newest_us = -MAX_TIME_US
        self._offset_us: int | None = None

    def arrivals(self) -> Iterator[Arrival]:
        reader = threading.Thread(
            target=self._read, name=f"headstart events {self.name}", daemon=True
        )
        reader.start()
        last_us = -MAX_APART_US
        try:
            for arrival in self._source.arrivals():
                yield replace(arrival, events=self._until(arrival.time_us, last_us))
                last_us = arrival.time_us
        finally:
            self._stopped.set()
            reader.join()

    def close(self) -> None:
        self._stopped.set()
        super().close()

    def _until(self, stop_us: int, start_us: int) -> Events | None:
        with self._lock:
            if not self._waiting:
                return None
            waiting = Events.concatenate(list(self._waiting))
            if len(waiting):
                offset_us = self._offset_us
                if offset_us is None or abs(self._newest_us + offset_us - stop_us) > MAX_APART_US:
                    offset_us = self._offset_us = stop_us - 1 - self._newest_us
                num_before = int(np.searchsorted(waiting.t, stop_us - offset_us))
                self._waiting = deque([waiting[num_before:]])
                self._num_waiting -= num_before
                waiting = waiting[:num_before].shifted(offset_us)
        return waiting.between(start_us, stop_us)

    def _read(self) -> None:
        back_off = BackOff()
        while not self._stopped.is_set():
            start_s = time.monotonic()
            try:
                for piece in self._packets(self._stopped):
                    self._add(piece)
                return
            except (HeadstartError, OSError, RuntimeError) as error:
                with self._lock:
                    self._forget()
                pause_s = back_off.after(time.monotonic() - start_s)
                logger.warning("the event camera is lost: %s; again in %.1f s", error, pause_s)
                self._stopped.wait(pause_s)

    def _add(self, piece: Events) -> None:
        with self._lock:
            if len(piece) and piece.t[0] < self._newest_us:  # its clock was set back
                self._forget()
            self._waiting.append(piece)
            self._num_waiting += len(piece)
            if len(piece):
                self._newest_us = int(piece.t[-1])
            while self._num_waiting > MAX_EVENTS and len(self._waiting) > 1:
                self._num_waiting -= len(self._waiting.popleft())

    def _forget(self) -> None:
        self._waiting.clear()
        self._num_waiting, self._newest_us, self._offset_us = 0, -MAX_TIME_US, None


_HOW_TO = (
    "plug it in, and on Linux run `neuromorphic-drivers-install-udev-rules` once so that you may"
    " read it"
)


def _driver() -> Any:
    try:
        import neuromorphic_drivers
    except ImportError as error:
        raise SourceError(
            "an event camera needs a package more: pip install 'headstart[camera]'"
        ) from error
    return neuromorphic_drivers


def _read_device(stopped: threading.Event) -> Iterator[Events]:
    with _driver().open(iterator_timeout=_LOOK_S) as device:
        size = device.properties()
        sensor = SensorSize(int(size.width), int(size.height))
        for _, packet in device:
            if stopped.is_set():
                return
            rows = None if packet is None else packet.polarity_events
            if rows is not None and len(rows):
                yield Events.checked(rows["x"], rows["y"], rows["t"], rows["on"], sensor)
