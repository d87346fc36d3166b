"""A source's pictures on their way into windows, without an engine: limits, and what is left."""

import asyncio
import queue
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headstart.errors import SourceError
from headstart.live.sources.source import Arrival, SourceCounts
from headstart.live.windows import Windows
from headstart_server.admission import Admission
from headstart_server.limits import Limits
from headstart_server.live import source_intake
from headstart_server.live.camera_resources import TenantContext
from headstart_server.live.source_intake import MAX_WAITING, SourceIntake
from headstart_server.media.loader import MediaBudget
from headstart_server.quota import Quota
from headstart_server.settings import Settings
from rig.footage import nothing_left
from rig.waiting import until, wait_until
from tests.serve.test_live_intake import HIGH, NUM_SLOTS, SLOT_US, Windowed

FRAME = np.zeros((4, 4, 3), np.uint8)


class Script:
    """A source that gives what it is told; None ends it, an error breaks it."""

    name = "rtsp://camera/street"

    def __init__(self) -> None:
        self._told: queue.SimpleQueue[Arrival | Exception | None] = queue.SimpleQueue()
        self.counts = SourceCounts()

    def tell(self, what: Arrival | Exception | None) -> None:
        self._told.put(what)

    def arrivals(self):
        while (told := self._told.get()) is not None:
            if isinstance(told, Exception):
                raise told
            yield told

    def close(self) -> None:
        self.tell(None)


def intake(live: Windowed, source: Script, *, simulate: bool = False, **limits) -> SourceIntake:
    bounds = Limits(min_free_bytes=1, **limits)
    admission = Admission(Settings(open=True, limits=bounds), Quota(bounds), lambda said: None)
    return SourceIntake(
        TenantContext("", admission, None, MediaBudget(bounds), bounds),
        live,
        source,
        simulate=simulate,
    )


def played(num_windows: int = 5, *, simulate: bool = False, prepare=None, **limits):
    """The windows and the intake after so many windows of pictures."""
    live, source = Windowed(Windows(0.4)), Script()
    for number in range(num_windows * NUM_SLOTS):
        source.tell(Arrival(FRAME, number * SLOT_US))
    source.tell(None)

    async def run() -> SourceIntake:
        made = intake(live, source, simulate=simulate, **limits)
        if prepare is not None:
            prepare(made)
        await made.run()
        live.end()
        made.close()
        made.shut()
        assert made._context.room.num_bytes == 0
        return made

    with nothing_left():
        made = asyncio.run(run())
    return live, made


def test_every_picture_reaches_its_window():
    live, made = played()
    assert [len(window.frames) for window in live.ended] == [NUM_SLOTS] * 5
    assert dict(made.placed) == dict(made.reasons) == {}


def test_where_the_rate_is_used_up_whole_windows_are_lost():
    live, made = played(tenant_requests_per_minute=3)
    assert {len(window.frames) for window in live.ended} == {NUM_SLOTS}
    assert (len(live.ended), len(live.lost)) == (3, 2)
    assert dict(made.reasons) == {"rate": 2}
    assert dict(made.placed) == {"discarded": 2 * NUM_SLOTS}


def test_memory_counts_what_waits_before_the_windows_and_loses_them_whole():
    held = (MAX_WAITING + 1) * FRAME.nbytes
    live, made = played(max_tenant_media_bytes=held + 1)
    assert len(live.ended) == 5
    live, made = played(max_tenant_media_bytes=held)
    assert (len(live.ended), len(live.lost), live.num_fed) == (0, 5, 0)
    assert dict(made.reasons) == {"memory": 5}


def test_short_of_memory_no_window_begins():
    def run_short(made: SourceIntake) -> None:
        made._context = replace(made._context, admission=SimpleNamespace(memory=HIGH))

    live, made = played(prepare=run_short)
    assert (len(live.ended), dict(made.reasons)) == (0, {"memory": 5})


def test_events_are_simulated_from_the_pictures():
    seen = []

    class Watched(Windowed):
        def feed(self, frame, time_us, events=None) -> None:
            seen.append(events)

    source = Script()
    for number, level in enumerate((0, 0, 200)):
        source.tell(Arrival(np.full((4, 4, 3), level, np.uint8), number * SLOT_US))
    source.tell(None)

    async def run() -> None:
        await intake(Watched(Windows(0.4)), source, simulate=True).run()

    asyncio.run(run())
    assert [len(events) > 0 for events in seen] == [False, False, True]


def test_a_camera_that_cannot_be_connected_to_is_said():
    source = Script()
    source.tell(SourceError("rtsp://camera/street: nothing answers"))

    async def run() -> None:
        made = intake(Windowed(Windows(0.4)), source)
        with pytest.raises(SourceError, match="nothing answers"):
            await made.run()
        made.shut()

    with nothing_left():
        asyncio.run(run())


def test_what_comes_after_the_close_is_not_taken_and_the_thread_ends():
    live, source = Windowed(Windows(0.4)), Script()

    async def run() -> None:
        made = intake(live, source)
        running = asyncio.ensure_future(made.run())
        source.tell(Arrival(FRAME, 0))
        await until(lambda: live.num_fed)
        assert made.newest is FRAME
        made.close()
        running.cancel()
        source.tell(Arrival(FRAME, SLOT_US))
        await asyncio.to_thread(made.shut)
        assert made.newest is None
        assert made._context.room.num_bytes == 0

    with nothing_left():
        asyncio.run(run())
    assert live.num_fed == 1


def test_a_thread_that_waits_for_a_loop_that_has_ended_ends_too(monkeypatch):
    """A server that breaks down stops its loop; what was called in it is then never done."""
    monkeypatch.setattr(source_intake, "LOOK_S", 0.01)
    live, source, loop = Windowed(Windows(0.4)), Script(), asyncio.new_event_loop()
    running: list[asyncio.Future[None]] = []

    async def begin() -> SourceIntake:
        made = intake(live, source)
        running.append(asyncio.ensure_future(made.run()))
        await asyncio.sleep(0)
        return made

    with nothing_left():
        made = loop.run_until_complete(begin())
        source.tell(Arrival(FRAME, 0))  # nobody runs the loop any more, and nobody has closed it
        wait_until(lambda: not made._thread.is_alive(), "the thread's end")
        running[0].cancel()
        loop.run_until_complete(asyncio.wait(running))
        loop.close()
    assert live.num_fed == 0


def test_a_thread_waits_for_a_loop_that_is_only_slow(monkeypatch):
    monkeypatch.setattr(source_intake, "LOOK_S", 0.001)
    live, source = Windowed(Windows(0.4)), Script()

    async def run() -> None:
        made = intake(live, source)
        running = asyncio.ensure_future(made.run())
        await asyncio.sleep(0)
        source.tell(Arrival(FRAME, 0))
        looked = 0

        def looks() -> bool:
            nonlocal looked
            looked += 1
            return True

        with monkeypatch.context() as watched:
            watched.setattr(made._loop, "is_running", looks)
            wait_until(lambda: looked >= 3, "it has looked for the loop")  # which stands still here
        source.tell(None)
        await running
        made.shut()

    with nothing_left():
        asyncio.run(run())
    assert live.num_fed == 1
