"""What other threads are told of a live session, whenever they ask, adds up."""

import asyncio
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from headstart.engine.loop_thread import LoopThread
from headstart.live.session import LiveSession
from headstart.live.when import Always
from headstart.live.windows import Windows
from headstart.speculation.drafter import StreamKey
from rig.waiting import wait_until

NUM_SLOTS = 2
FRAME_BYTES = 4 * 4 * 3
SECOND_US = 1_000_000


class Announced:
    """A lock that has others look, in a thread of their own, each time that it is given back."""

    def __init__(self, lock, look):
        self._lock, self._look = lock, look
        self._depth, self._is_looked_at = 0, False

    def __enter__(self):
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *exc):
        self._depth -= 1
        is_free = not self._depth
        self._lock.release()
        if is_free and not self._is_looked_at:
            self._is_looked_at = True
            reader = threading.Thread(target=self._look)
            reader.start()
            reader.join()
            self._is_looked_at = False


class EveryOther(Always):
    def is_wanted(self, start_us, stop_us):
        return start_us // SECOND_US % 4 == 0


@dataclass(frozen=True)
class Asked:
    previews: bool = False
    window: str = ""


class NeverAnswers:
    """A session whose target is at its first answer for ever."""

    key = StreamKey("", "camera")

    def __init__(self, loop):
        self.loop = loop
        view = SimpleNamespace(num_frames=NUM_SLOTS, frames_per_item=1)
        self.target = SimpleNamespace(view=view, keeps_prefixes=False, ask=self.ask)

    def question(self, *_):
        return Asked()

    async def ask(self, *_):
        await asyncio.Event().wait()


@pytest.fixture
def loop():
    thread = LoopThread()
    yield thread
    thread.close()


def test_windows_and_frames_add_up_for_a_thread_that_reads_while_the_loop_writes(loop):
    live = LiveSession(NeverAnswers(loop), Windows(seconds=2), when=EveryOther())
    standing, seen = live.standing("What is there?"), []
    lock = live._lock
    live._lock = standing._lock = Announced(
        lock, lambda: seen.append((live.counts, live.held_bytes, len(standing.held)))
    )

    async def feed(number):
        live.feed(np.zeros((4, 4, 3), np.uint8), number * SECOND_US)

    for number in range(8 * NUM_SLOTS):
        loop.submit(feed(number)).result(30)
    wait_until(lambda: live.counts.windows == 8)
    live._lock = standing._lock = lock
    for counts, held_bytes, num_held in seen:
        num_waiting = num_held - counts.asked
        fates = counts.asked + counts.skipped + counts.dropped + counts.unread
        assert counts.windows == fates + num_waiting
        assert held_bytes >= num_held * NUM_SLOTS * FRAME_BYTES
    told = [(counts.windows, counts.asked, counts.skipped, counts.dropped) for counts, *_ in seen]
    assert told[-1] == (8, 1, 4, 2)
    live.close()
    assert list(standing) == []
