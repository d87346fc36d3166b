"""A camera that is connected to again whenever it is lost."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from headstart.errors import HeadstartError, SourceError
from headstart.live.sources.pace import SourceClock
from headstart.live.sources.source import Connection, SourceCounts

FIRST_S = 0.5
LONGEST_S = 30.0
HELD_S = 10.0


class BackOff:
    """Half a second, doubling up to half a minute; shorter by chance, up to the half of it.

    Chance keeps many cameras, lost at once, from coming back at once.
    """

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def after(self, held_s: float) -> float:
        """The pause after a connection that held so long; one that held well starts anew."""
        if held_s >= HELD_S:
            self._next_s = FIRST_S
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_S)
        return pause_s * random.uniform(0.5, 1.0)


logger = logging.getLogger(__name__)


class Reconnecting:
    """A `Feed` over one connection after another.

    A first connection that fails is an error: an address that is wrong would otherwise be tried
    for ever. From the first frame on, a lost connection is made again for as long as it takes.
    """

    def __init__(self, name: str, connect: Callable[[], Connection]) -> None:
        self._name, self._connect = name, connect
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._answered: Connection | None = None
        self._num_answered = 0
        self._lost_because: str | None = None

    @property
    def counts(self) -> SourceCounts:
        reconnects = max(0, self._num_answered - 1)
        return SourceCounts(reconnects=reconnects, lost_because=self._lost_because)

    def frames(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        clock, back_off = SourceClock(), BackOff()
        while (connection := self._connected()) is not None:
            start_s = time.monotonic()
            try:
                for stated_us, frame in connection.frames():
                    self._note_answer(connection)
                    yield clock.stamp(stated_us), frame
                return
            except (HeadstartError, OSError) as error:
                if self._stopped.is_set():
                    return
                if self._answered is None:
                    raise SourceError(f"{self._name}: {error}") from error
                self._lost_because = str(error)
                pause_s = back_off.after(time.monotonic() - start_s)
                logger.warning("%s: %s; trying again in %.1f s", self._name, error, pause_s)
            finally:
                connection.close()
            clock.reconnected()
            self._stopped.wait(pause_s)

    def close(self) -> None:
        self._stopped.set()
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _connected(self) -> Connection | None:
        with self._lock:
            if self._stopped.is_set():
                return None
            self._connection = self._connect()
            return self._connection

    def _note_answer(self, connection: Connection) -> None:
        if self._answered is not connection:
            self._answered = connection
            self._num_answered += 1
            self._lost_because = None
