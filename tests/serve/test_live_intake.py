"""A camera's pictures on their way into windows, with decoders that are too slow or refuse."""

import asyncio
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest

from headstart.live.windows import GrowingWindows, Windows
from headstart.media.events import Events, SensorSize
from headstart_client.wire import Media, MediaKind, pack_events
from headstart_server.admission import Admission
from headstart_server.limits import Limits
from headstart_server.live.camera_resources import TenantContext
from headstart_server.live.socket_intake import MAX_LOSSES, SocketIntake
from headstart_server.media.decoder import DecodedPicture
from headstart_server.media.loader import MediaBudget
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError, bad_request
from headstart_server.settings import Settings

NUM_SLOTS = 4
SLOT_US = 100_000
PICTURE = b"\xff\xd8\xff" + bytes(997)
HIGH = SimpleNamespace(is_high=True)
"""What memory looks like where it is short."""


class Windowed:
    """In place of `LiveSession`: the windows themselves, without a target."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.growing = GrowingWindows(windows, NUM_SLOTS)
        self.ended: list = []
        self.lost: list[int] = []
        self.num_fed = 0
        self.held_bytes = 0

    def feed(self, frame, time_us, events=None) -> None:
        self.num_fed += 1
        self.ended += self.growing.land(frame, time_us, 0.0, events).ended

    def lose(self, time_us) -> None:
        landing = self.growing.lose(time_us)
        self.ended += landing.ended
        self.lost += landing.lost

    def end(self) -> None:
        self.ended += self.growing.end_before(2**62)


class Decoder:
    """Takes a while, and cannot read some pictures."""

    def __init__(self, chance: random.Random, bad_share: float = 0.0) -> None:
        self._chance, self._bad_share = chance, bad_share

    async def picture(self, tenant, fetched) -> DecodedPicture:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
        if self._chance.random() < self._bad_share:
            raise bad_request("the picture cannot be read")
        return DecodedPicture(PIL.Image.new("RGB", (4, 4)), 48)


class Stuck:
    """Is never done."""

    async def picture(self, tenant, fetched) -> DecodedPicture:
        await asyncio.Event().wait()
        raise AssertionError


def intake(live: Windowed, decoder: Decoder, **limits) -> SocketIntake:
    bounds = Limits(min_free_bytes=1, **limits)
    admission = Admission(Settings(open=True, limits=bounds), Quota(bounds), lambda said: None)
    context = TenantContext("", admission, decoder, MediaBudget(bounds), bounds)
    return SocketIntake(context, live, lambda refusal: None)


async def play(made: SocketIntake, live: Windowed, times_us: list[int], pause) -> None:
    running = asyncio.ensure_future(made.run())
    for time_us in times_us:
        made.put(Media(MediaKind.PICTURE, time_us, PICTURE))
        await pause()
    made.end()
    await running
    live.end()


@pytest.mark.parametrize("step_s", [0.4, 0.2, 0.1])
def test_however_slow_the_decoders_are_no_window_is_half(step_s):
    chance, num_lost = random.Random(17), 0
    for _ in range(60):
        live = Windowed(Windows(0.4, step_s))
        made = intake(
            live, Decoder(chance, chance.choice((0, 0.03))), max_live_waiting_bytes=6 * len(PICTURE)
        )
        num_frames = 20 * NUM_SLOTS
        times_us = [number * SLOT_US for number in range(num_frames)]

        async def pause() -> None:
            for _ in range(chance.randrange(30)):
                await asyncio.sleep(0)

        asyncio.run(play(made, live, times_us, pause))
        step_us, last_us = round(step_s * 1e6), times_us[-1]
        ended = {window.number: len(window.frames) for window in live.ended}
        for number, count in ended.items():
            is_cut_by_the_end = number * step_us + 3 * SLOT_US > last_us
            assert count == NUM_SLOTS or is_cut_by_the_end, (number, count)
        assert not set(ended) & set(live.lost)
        # Every window has ended or was lost, and every picture is counted once.
        assert sorted([*ended, *live.lost]) == list(range(last_us // step_us + 1))
        assert live.num_fed + sum(made.placed.values()) == num_frames
        assert bool(made.reasons) == bool(live.lost)
        assert made._num_bytes == 0
        num_lost += len(live.lost)
    assert num_lost > 60, "it was too much often enough"


async def at_once() -> None:
    await asyncio.sleep(0)


def lost_for(**limits) -> dict[str, int]:
    live, chance = Windowed(Windows(0.4)), random.Random(1)

    async def run() -> dict[str, int]:
        made = intake(live, Decoder(chance), **limits)
        await play(made, live, [number * SLOT_US for number in range(5 * NUM_SLOTS)], at_once)
        return dict(made.reasons)

    reasons = asyncio.run(run())
    assert len(live.lost) == sum(reasons.values())
    assert {len(window.frames) for window in live.ended} <= {NUM_SLOTS}
    assert len(live.ended) + len(live.lost) == 5
    return reasons


def test_each_limit_loses_windows_for_its_own_reason():
    assert lost_for() == {}
    assert lost_for(live_frames_per_minute=2 * NUM_SLOTS) == {"flood": 3}
    assert lost_for(tenant_requests_per_minute=3) == {"rate": 2}
    assert lost_for(max_live_waiting_bytes=1) == {"flood": 5}


def test_frames_that_hold_too_much_memory_are_let_go():
    live = Windowed(Windows(0.4))
    live.held_bytes = 1000

    async def run() -> SocketIntake:
        made = intake(live, Decoder(random.Random(2)), max_tenant_media_bytes=1000)
        times_us = [number * SLOT_US for number in range(3 * NUM_SLOTS)]
        await play(made, live, times_us, at_once)
        made.close()
        assert made._context.room.num_bytes == 0
        return made

    made = asyncio.run(run())
    assert dict(made.reasons) == {"memory": 3}
    assert live.num_fed == 1, "the first one filled it"


def test_short_of_memory_no_window_begins():
    live = Windowed(Windows(0.4))

    async def run() -> dict[str, int]:
        made = intake(live, Decoder(random.Random(3)))
        made._context = replace(made._context, admission=SimpleNamespace(memory=HIGH))
        await play(made, live, [0, SLOT_US, 4 * SLOT_US], at_once)
        return dict(made.reasons)

    assert asyncio.run(run()) == {"memory": 2}
    assert live.num_fed == 0


def test_a_client_cannot_lose_windows_without_end():
    """While one picture is decoded for long, each of the others is in a window of its own."""
    live = Windowed(Windows(0.01))

    async def run() -> None:
        made = intake(live, Stuck(), live_frames_per_minute=1)
        running = asyncio.ensure_future(made.run())
        try:
            for number in range(2 * MAX_LOSSES):
                made.put(Media(MediaKind.PICTURE, number * 10_000, PICTURE))
                await asyncio.sleep(0)
        finally:
            assert len(made._waiting) <= MAX_LOSSES + 1
            running.cancel()

    with pytest.raises(RefusedError, match="lost faster"):
        asyncio.run(run())


def test_of_what_waits_the_lost_windows_are_discarded_and_older_ones_kept():
    live = Windowed(Windows(0.4, 0.2))

    async def run() -> SocketIntake:
        made = intake(live, Stuck(), max_live_waiting_bytes=5 * len(PICTURE))
        running = asyncio.ensure_future(made.run())
        for slot in range(8):
            made.put(Media(MediaKind.PICTURE, slot * SLOT_US, PICTURE))
            await asyncio.sleep(0)
        running.cancel()
        return made

    made = asyncio.run(run())
    # 0 is being decoded. 5 does not fit, and 4 is lost with it; 1 to 3 are of the window before.
    # Then 6 fits, and is lost with 7.
    waiting = [(type(one).__name__, one.time_us // SLOT_US) for one in made._waiting]
    assert waiting == [
        ("Media", 1),
        ("Media", 2),
        ("Media", 3),
        ("LostWindows", 5),
        ("LostWindows", 7),
    ]
    assert made.placed["discarded"] == 4


def test_what_is_missing_takes_no_room():
    """However a client mixes pictures that are late with events that do not fit."""
    live, sensor = Windowed(Windows(0.4)), SensorSize(96, 64)
    events = pack_events(_events(100, sensor))

    async def run() -> int:
        made = intake(live, Stuck(), max_live_waiting_bytes=2 * len(PICTURE))
        made._sensor = sensor
        running = asyncio.ensure_future(made.run())
        made.put(Media(MediaKind.PICTURE, SLOT_US, PICTURE))
        for _ in range(50):
            await asyncio.sleep(0)
            made.put(Media(MediaKind.PICTURE, 0, PICTURE))
            made.put(Media(MediaKind.EVENTS, 0, events))
        running.cancel()
        return len(made._waiting)

    assert asyncio.run(run()) == 2


def test_pictures_that_are_late_are_not_decoded():
    live = Windowed(Windows(0.4))

    async def run() -> SocketIntake:
        made = intake(live, Decoder(random.Random(4)))
        await play(made, live, [0, 100_000, 100_000, 50_000, 200_000], at_once)
        return made

    made = asyncio.run(run())
    assert dict(made.placed) == {"doubled": 1, "late": 1}
    assert live.num_fed == 3


def late_by(late_us: int, count: int) -> tuple[list[str], int]:
    """What is said of so many pictures after one with a time ahead, and how many were late."""
    live, said = Windowed(Windows(0.4)), []

    async def run() -> int:
        made = intake(live, Decoder(random.Random(5)))
        made._on_unreadable = lambda refusal: said.append(refusal.message)
        times_us = [number * SLOT_US for number in range(count)]
        ahead_us = times_us[-1] + late_us
        await play(made, live, [ahead_us, *times_us, ahead_us + SLOT_US, *times_us[:3]], at_once)
        return made.placed["late"]

    num_late = asyncio.run(run())
    return said, num_late


def test_whoever_stamps_a_picture_far_ahead_is_told_that_all_others_are_late():
    said, num_late = late_by(3600_000_000, 100)
    assert num_late == 103
    assert [message.split()[0] for message in said] == ["16", "32", "64"]
    assert "start the camera again" in said[0]
    assert "3608 s earlier" in said[0]
    assert late_by(3600_000_000, 15) == ([], 18)


def test_pictures_that_are_sent_again_are_late_and_nothing_is_said():
    assert late_by(0, 30) == ([], 32)


def test_events_that_do_not_fit_are_missed_by_the_next_picture_and_no_other():
    live, sensor = Windowed(Windows(0.4)), SensorSize(96, 64)
    seen: list[Events | None] = []
    live.feed = lambda frame, time_us, events=None: seen.append(events)  # type: ignore[method-assign]
    few, many = (pack_events(_events(count, sensor)) for count in (2, 400))

    async def run() -> None:
        made = intake(live, Decoder(random.Random(6)), max_live_waiting_bytes=5000)
        made._sensor = sensor
        running = asyncio.ensure_future(made.run())
        for number, events in enumerate((few, few, many, few)):
            made.put(Media(MediaKind.EVENTS, number * SLOT_US, events))
            made.put(Media(MediaKind.PICTURE, number * SLOT_US, PICTURE))
        made.end()
        await running

    asyncio.run(run())
    assert [None if one is None else len(one) for one in seen] == [2, 2, None, 2]


def _events(count: int, sensor: SensorSize) -> Events:
    zeros = np.zeros(count, np.int64)
    return Events.checked(zeros, zeros, zeros, zeros, sensor)


def test_sixteen_in_a_row_that_cannot_be_read_are_no_camera():
    live = Windowed(Windows(0.1))

    async def run() -> None:
        made = intake(live, Decoder(random.Random(5), bad_share=1.0))
        await play(made, live, [number * SLOT_US for number in range(20)], at_once)

    with pytest.raises(RefusedError, match="in a row"):
        asyncio.run(run())
