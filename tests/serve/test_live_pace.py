"""A live client that sends as fast as it can, on a server that another tenant uses meanwhile.

At which pace its messages are read is shown by a clock that is turned, in `test_live_socket`. How
long others wait beside it is for the programs under `benchmarks` to measure.
"""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headstart_server.limits import Limits
from rig.live_camera import NUM_SLOTS, SLOT_US, LiveCamera, answers_of, jpegs
from rig.servers import Server, metric

pytestmark = pytest.mark.engine
NUM_WINDOWS = 4
MESSAGES_A_S = 4 * Limits().live_frames_per_minute / 60
NUM_READ = 2 * MESSAGES_A_S
"""Of the flood, while the other tenant asks: more than the second's worth that is read at once."""
HELD_BACK = 50_000
"""Bytes that have come and that the server does not read yet."""


class Flood:
    """Pictures of one camera as fast as the socket takes them."""

    def __init__(self, server: Server) -> None:
        self._camera = LiveCamera(server, "key-north", ping_interval=None)
        self._camera.start(stream="too fast", max_tokens=4)
        work = (self._send, self._hear)
        self._threads = [threading.Thread(target=each, daemon=True) for each in work]

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._camera.cut()
            for thread in self._threads:
                thread.join(60)

    @property
    def num_read(self) -> int:
        """How many messages the server has read and counted, as it said last."""
        counts = [said for said in list(self._camera.heard) if said["type"] == "counts"]
        return sum(counts[-1]["frames"].values()) if counts else 0

    def _send(self) -> None:
        pictures = jpegs(NUM_SLOTS, seed=120)
        with contextlib.suppress(Exception):  # until the connection is cut
            for number in itertools.count():
                self._camera.show(pictures[number % NUM_SLOTS], number * SLOT_US)

    def _hear(self) -> None:
        with contextlib.suppress(Exception):
            while True:
                message = self._camera.hear()
                if message["type"] == "answer":
                    self._camera.ack(message)


def unread_by(port: int) -> int:
    """The most that a socket of the server's holds and the server has not read."""
    most = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, queues = line.split()[1], line.split()[4]
        if int(local.rpartition(":")[2], 16) == port:
            most = max(most, int(queues.partition(":")[2], 16))
    return most


def ask_beside(server: Server) -> dict[str, int]:
    """A camera that shows windows and waits for the answer of each; what became of them."""
    with LiveCamera(server, "key-south") as camera:
        camera.start(stream="beside", max_tokens=4)
        for number in range(NUM_WINDOWS):
            camera.show_window(jpegs(NUM_SLOTS, 150 + number), number)
            camera.ack(camera.wait_for("answer"))
        assert len(list(answers_of(camera.heard))) == NUM_WINDOWS
        camera.say({"type": "end"})
        rest, _ = camera.rest()
    windows: dict[str, int] = [said for said in rest if "windows" in said][-1]["windows"]
    return windows


def test_who_sends_too_fast_is_read_at_the_pace_and_holds_up_nobody(server, north):
    server.wait_until(lambda: metric(north, "headstart_tenant_live_cameras") == 0, "room")
    ask_beside(server)  # what is loaded only once is no growth
    before = psutil.Process(server.process.pid).memory_info().rss
    flood = Flood(server)
    with flood.under_way():
        server.wait_until(lambda: unread_by(server.port) > HELD_BACK, "the flood held back")
        windows = ask_beside(server)
        server.wait_until(lambda: flood.num_read >= NUM_READ, "more of it to be read")
        server.wait_until(lambda: unread_by(server.port) > HELD_BACK, "it held back again")
        grown = psutil.Process(server.process.pid).memory_info().rss - before
    assert grown < 100e6
    assert windows["asked"] == windows["ended"] == NUM_WINDOWS
    assert windows.get("lost", 0) == windows.get("dropped", 0) == 0
