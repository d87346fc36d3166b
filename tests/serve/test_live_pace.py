"""A live client that sends as fast as it can, on a server that another tenant uses meanwhile."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from headstart.serve.settings import Limits
from tests.serve.live_camera import NUM_SLOTS, SLOT_US, LiveCamera, answers_of, jpegs
from tests.serve.servers import Server, metric

pytestmark = pytest.mark.engine
NUM_WINDOWS = 4
MESSAGES_A_S = 4 * Limits().live_frames_per_minute / 60
FLOOD_S = 6.0


class Flood:
    """Pictures of one camera as fast as the socket takes them."""

    def __init__(self, server: Server) -> None:
        self._camera = LiveCamera(server, "key-north", ping_interval=None)
        self._camera.start(stream="too fast", max_tokens=4)
        self._began_s = time.monotonic()
        self._num_sent = 0
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

    def messages_a_s(self) -> tuple[float, float]:
        """How many the client has sent, and the server has read and counted, at most."""
        num_s = time.monotonic() - self._began_s
        counts = [said for said in self._camera.heard if said["type"] == "counts"]
        num_read = sum(counts[-1]["frames"].values()) if counts else 0
        return self._num_sent / num_s, max(0.0, num_read - MESSAGES_A_S) / num_s

    def _send(self) -> None:
        pictures = jpegs(NUM_SLOTS, seed=120)
        with contextlib.suppress(Exception):  # until the connection is cut
            for number in itertools.count():
                self._camera.show(pictures[number % NUM_SLOTS], number * SLOT_US)
                self._num_sent += 1

    def _hear(self) -> None:
        with contextlib.suppress(Exception):
            while True:
                message = self._camera.hear()
                if message["type"] == "answer":
                    self._camera.ack(message)


def waits_s(server: Server, seed: int) -> list[float]:
    """How long a camera waits for each of its answers, from the last picture on."""
    waits = []
    with LiveCamera(server, "key-south") as camera:
        camera.start(stream="beside", max_tokens=4)
        for number in range(NUM_WINDOWS):
            pictures = jpegs(NUM_SLOTS, seed + number)
            for slot, picture in enumerate(pictures):
                camera.show(picture, (number * NUM_SLOTS + slot) * SLOT_US)
                time.sleep(SLOT_US / 1e6)
            shown_s = time.monotonic()
            camera.ack(camera.wait_for("answer"))
            waits.append(time.monotonic() - shown_s)
        assert len(list(answers_of(camera.heard))) == NUM_WINDOWS
    return waits


def test_who_sends_too_fast_is_read_at_the_pace_and_holds_up_nobody(server, north):
    server.wait_until(lambda: metric(north, "headstart_tenant_live_cameras") == 0, "room")
    waits_s(server, seed=130)  # whatever is slow only once
    alone_s = waits_s(server, seed=140)
    before = psutil.Process(server.process.pid).memory_info().rss
    flood = Flood(server)
    with flood.under_way():
        began_s = time.monotonic()
        beside_s = waits_s(server, seed=150)
        time.sleep(max(0.0, began_s + FLOOD_S - time.monotonic()))
        sent, read = flood.messages_a_s()
        grown = psutil.Process(server.process.pid).memory_info().rss - before
    assert 0 < read < 1.2 * MESSAGES_A_S, (sent, read)
    assert grown < 100e6
    # Generous: the machine may be busy with other things.
    assert sorted(beside_s)[NUM_WINDOWS // 2] < 3 * sorted(alone_s)[NUM_WINDOWS // 2] + 1.0
