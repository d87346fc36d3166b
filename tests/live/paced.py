"""The pace of files and drives by a clock that only their own waiting turns."""

import time as wall

import pytest

from headstart.live.sources import pace


class Paced:
    """How long was waited for each frame, however busy the machine is.

    Whoever waits really waits: who reads the frames keeps up with them.
    """

    def __init__(self) -> None:
        self.waits_s: list[float] = []
        self._now_s = wall.monotonic()

    def monotonic(self) -> float:
        return self._now_s

    def wait(self, waiting: pace.Pace, seconds: float) -> bool:
        self.waits_s.append(seconds)
        self._now_s += seconds
        return waiting._stopped.wait(seconds)


@pytest.fixture
def paced(monkeypatch) -> Paced:
    clock = Paced()
    monkeypatch.setattr(pace, "time", clock)
    monkeypatch.setattr(pace.Pace, "sleep", lambda waiting, seconds: clock.wait(waiting, seconds))
    return clock
