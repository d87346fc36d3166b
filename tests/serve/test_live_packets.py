"""Encoded pictures on their way into windows, decoded by real processes, some of them killed."""

import asyncio
import random
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from headstart.live.windows import Windows
from headstart.media.annex_b import Codec
from headstart_client.wire import Media, MediaKind
from headstart_server.admission import Admission
from headstart_server.limits import Limits
from headstart_server.live.camera_resources import TenantContext
from headstart_server.live.socket_intake import MAX_UNREADABLE, SocketIntake
from headstart_server.media.decoder import MediaDecoder
from headstart_server.media.loader import MediaBudget
from headstart_server.quota import Quota
from headstart_server.refusal import RefusedError
from headstart_server.settings import Settings
from rig.waiting import until
from tests.media.encoded import decode, encode, street
from tests.sandbox.test_pool import Sandbox
from tests.serve.test_live_intake import NUM_SLOTS, SLOT_US, Windowed

pytestmark = pytest.mark.slow
GOP = 6
NUM_FRAMES = 36
WINDOW_US = NUM_SLOTS * SLOT_US


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.pool.close()
    sandbox.run(until(lambda: len(asyncio.all_tasks()) == 1, "its end"))
    sandbox.loop.close()


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return street(NUM_FRAMES)


@pytest.fixture(scope="module")
def packets(frames) -> list[bytes]:
    return encode(frames, gop=GOP)


class EncodedCamera:
    """An intake of encoded video, and what has come of it."""

    def __init__(
        self, sandbox: Sandbox, codec: Codec = Codec.H264, step_s: float = 0.4, **limits: int
    ) -> None:
        bounds = Limits(min_free_bytes=1, **limits)
        admission = Admission(Settings(open=True, limits=bounds), Quota(bounds), lambda said: None)
        decoder = MediaDecoder(sandbox.pool, bounds)
        context = TenantContext("", admission, decoder, MediaBudget(bounds), bounds)
        self.live = Windowed(Windows(0.4, step_s))
        self.told: list[str] = []
        self.intake = SocketIntake(
            context, self.live, lambda refusal: self.told.append(refusal.message), codec=codec
        )

    def put(self, packet: bytes, slot: int, kind: MediaKind = MediaKind.ENCODED) -> None:
        self.intake.put(Media(kind, slot * SLOT_US, packet))

    async def all_taken(self) -> None:
        """Until nothing waits, and nothing is being decoded."""
        await until(lambda: not (self.intake._waiting or self.intake._num_bytes))

    async def play(self, packets: dict[int, bytes]) -> "EncodedCamera":
        """Show packets by their slots, each as soon as the one before is decoded."""
        running = asyncio.ensure_future(self.intake.run())
        for slot, packet in packets.items():
            self.put(packet, slot)
            await until(
                lambda: running.done() or not (self.intake._waiting or self.intake._num_bytes)
            )
        return await self.end(running)

    async def end(self, running: "asyncio.Future[None]") -> "EncodedCamera":
        self.intake.end()
        await running
        self.live.end()
        return self

    @property
    def windows(self) -> dict[int, list[int]]:
        """The slots of each window that ended."""
        return {one.number: [t // SLOT_US for t in one.times_us] for one in self.live.ended}

    def check_frames(self, expected: list[np.ndarray]) -> None:
        """Every frame in a window is what was encoded for its time."""
        for window in self.live.ended:
            for frame, time_us in zip(window.frames, window.times_us, strict=True):
                assert np.array_equal(frame, expected[time_us // SLOT_US])

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.intake._pictures._lease.pid)  # type: ignore[attr-defined]


def by_slot(packets: list[bytes]) -> dict[int, bytes]:
    return dict(enumerate(packets))


def window(number: int) -> list[int]:
    return list(range(number * NUM_SLOTS, (number + 1) * NUM_SLOTS))


@pytest.mark.parametrize("codec", list(Codec))
def test_windows_hold_what_was_encoded(sandbox, frames, codec):
    packets = encode(frames, codec, GOP)
    camera = EncodedCamera(sandbox, codec)
    sandbox.run(camera.play(by_slot(packets)))
    assert camera.windows == {number: window(number) for number in range(9)}
    camera.check_frames(decode(packets, codec))
    assert camera.told == []
    assert not camera.intake.reasons
    assert not camera.intake.placed


@pytest.mark.parametrize("step_s", [0.4, 0.2, 0.1])
def test_however_much_is_lost_no_window_is_half_and_no_frame_is_wrong(sandbox, packets, step_s):
    """After a lost picture those that build on it would be decoded wrong without an error."""
    chance, expected, num_lost = random.Random(23), decode(packets), 0
    most = 2 * max(map(len, packets))
    for _ in range(8):
        camera = EncodedCamera(sandbox, step_s=step_s, max_live_waiting_bytes=most)

        async def play(camera=camera) -> None:
            running = asyncio.ensure_future(camera.intake.run())
            for slot, packet in enumerate(packets):
                camera.put(packet, slot)
                if chance.random() < 0.3:
                    await camera.all_taken()
            await camera.end(running)

        sandbox.run(play())
        step_us, last_us = round(step_s * 1e6), (NUM_FRAMES - 1) * SLOT_US
        ended, lost = camera.windows, camera.live.lost
        for number, slots in ended.items():
            is_cut_by_the_end = number * step_us + WINDOW_US - SLOT_US > last_us
            assert len(slots) == NUM_SLOTS or is_cut_by_the_end, (number, slots)
        assert not set(ended) & set(lost)
        assert sorted([*ended, *lost]) == list(range(last_us // step_us + 1))
        assert camera.live.num_fed + sum(camera.intake.placed.values()) == NUM_FRAMES
        assert set(camera.intake.reasons) <= {"flood", "key"}
        camera.check_frames(expected)
        num_lost += len(lost)
    assert num_lost > 8, "it was too much often enough"


def test_before_the_first_key_picture_windows_are_lost(sandbox, packets):
    # The key pictures are 6, 12, ...: the one in the middle of window 1 comes too late for it.
    camera = EncodedCamera(sandbox)
    sandbox.run(camera.play({slot: packets[slot] for slot in range(1, 17)}))
    # The grid begins with the first picture, slot 1: window 1 is 5 to 8.
    assert camera.windows == {2: [9, 10, 11, 12], 3: [13, 14, 15, 16]}
    assert camera.live.lost == [0, 1]
    assert dict(camera.intake.reasons) == {"key": 2}
    assert dict(camera.intake.placed) == {"discarded": 5}
    camera.check_frames(decode(packets))
    assert len(camera.told) == 2
    assert "key picture" in camera.told[0]


@pytest.mark.parametrize("lost_by", ["unreadable", "out of order", "resumed"])
def test_what_builds_on_a_lost_picture_is_discarded_until_a_key_picture(sandbox, packets, lost_by):
    camera = EncodedCamera(sandbox)

    async def play() -> None:
        running = asyncio.ensure_future(camera.intake.run())
        for slot, packet in enumerate(packets):
            if slot == 9:  # in window 2, which is 8 to 11; the next key picture is 12
                match lost_by:
                    case "unreadable":
                        camera.put(b"\0\0\1\x41 rubbish", slot)
                    case "out of order":
                        camera.put(packet, slot - 1)
                    case "resumed":
                        camera.intake.cut()
                continue
            camera.put(packet, slot)
            await camera.all_taken()
        await camera.end(running)

    sandbox.run(play())
    assert camera.windows == {n: window(n) for n in range(9) if n != 2}
    assert camera.live.lost == [2]
    reason = "unreadable" if lost_by == "unreadable" else "key"
    assert dict(camera.intake.reasons) == {reason: 1}
    camera.check_frames(decode(packets))


def test_each_window_without_a_key_picture_is_lost(sandbox, frames):
    """A stream with one key picture never comes back, and is told so."""
    packets = encode(frames, gop=1000)
    camera = EncodedCamera(sandbox)
    sandbox.run(camera.play(by_slot(packets) | {5: b"\0\0\1\x41 rubbish"}))
    assert camera.windows == {0: window(0)}
    assert camera.live.lost == list(range(1, 9))
    assert dict(camera.intake.reasons) == {"unreadable": 1, "key": 7}
    assert len(camera.told) == 8


@pytest.mark.parametrize("end", ["killed", "killed in the middle"])
def test_a_killed_decoder_loses_its_windows_and_another_takes_over(sandbox, packets, end):
    camera, pids = EncodedCamera(sandbox), set()

    async def play() -> None:
        running = asyncio.ensure_future(camera.intake.run())
        for slot, packet in enumerate(packets):
            if slot == 9 and end == "killed":
                camera.process.kill()
                camera.process.wait(30)
            camera.put(packet, slot)
            if slot == 9 and end == "killed in the middle":
                camera.process.suspend()
                await asyncio.sleep(0.05)  # plays: a decoder that dies while it is waited for
                camera.process.kill()
            await camera.all_taken()
            if slot not in (9, 10, 11):
                pids.add(camera.process.pid)
        await camera.end(running)

    sandbox.run(play())
    assert camera.windows == {n: window(n) for n in range(9) if n != 2}
    assert dict(camera.intake.reasons) == {"unreadable": 1}
    assert "broke down" in camera.told[0]
    assert len(pids) == 2
    camera.check_frames(decode(packets))


def test_a_decoder_that_ended_before_a_key_picture_costs_nothing(sandbox, packets):
    camera = EncodedCamera(sandbox)

    async def play() -> None:
        running = asyncio.ensure_future(camera.intake.run())
        for slot, packet in enumerate(packets):
            if slot == 2 * GOP:
                process = camera.process
                process.kill()
                process.wait(60)
            camera.put(packet, slot)
            await camera.all_taken()
        await camera.end(running)

    sandbox.run(play())
    assert camera.windows == {number: window(number) for number in range(9)}
    assert not camera.intake.reasons
    camera.check_frames(decode(packets))


def test_what_builds_on_a_process_that_has_ended_is_refused(sandbox, packets):
    decoder = sandbox.decoder
    lease = decoder.lease("")

    def decoded(number: int) -> bytes:
        begins = number % GOP == 0
        work = decoder.encoded_picture(lease, Codec.H264, packets[number], begins=begins)
        return sandbox.run(work).image.tobytes()

    decoded(0)
    process = psutil.Process(lease.pid)
    process.kill()
    process.wait(60)
    assert lease.pid is None
    with pytest.raises(RefusedError, match="broke down"):
        decoded(1)
    with pytest.raises(RefusedError, match="has ended"):
        decoded(2)
    assert decoded(GOP) == decode(packets)[GOP].tobytes()
    lease.close()


def test_with_a_key_picture_decoding_begins_anew(sandbox, packets, frames):
    """What the decoder still held of the pictures before would come out in its place."""
    held = encode(frames, bframes=2)
    camera = EncodedCamera(sandbox)
    shown = by_slot(packets[:4]) | {4: held[0]} | {8 + slot: packets[slot] for slot in range(8)}
    sandbox.run(camera.play(shown))
    assert "without B-frames" in camera.told[0]
    assert camera.windows == {0: window(0), 2: window(2), 3: window(3)}
    expected = decode(packets)
    camera.check_frames([*expected[:8], *expected[:8]])


def test_rubbish_loses_its_window_and_sixteen_in_a_row_the_camera(sandbox, packets):
    sets, _, _ = packets[0].partition(b"\0\0\1\x06")
    hostile = [
        b"\x00\x00\x00\x20\x65" + bytes(40),  # lengths in place of start codes
        packets[0][:-40],
        sets + b"\0\0\1\x65" + random.Random(1).randbytes(500),
        b"\xff\xd8\xff" + bytes(40),
    ]
    camera = EncodedCamera(sandbox)
    shown = by_slot(packets[:12])
    shown |= {12 + number * NUM_SLOTS: packet for number, packet in enumerate(hostile)}
    shown |= {28 + slot: packets[slot] for slot in range(8)}
    sandbox.run(camera.play(shown))
    assert camera.windows == {number: window(number) for number in (0, 1, 2, 7, 8)}
    assert camera.live.lost == [3, 4, 5, 6]
    assert dict(camera.intake.reasons) == {"unreadable": 4}
    assert ["Annex B" in told for told in camera.told] == [True, False, False, True]
    refused = EncodedCamera(sandbox)
    with pytest.raises(RefusedError, match="in a row"):
        sandbox.run(refused.play({slot * NUM_SLOTS: b"rubbish" for slot in range(20)}))
    assert len(refused.told) == MAX_UNREADABLE - 1


def test_pictures_that_are_too_large_are_never_made(sandbox, packets):
    """A picture of 16 million black pixels takes a few thousand bytes."""
    bomb = encode(np.zeros((1, 4096, 4096, 3), np.uint8))[0]
    assert len(bomb) < 100_000
    camera = EncodedCamera(sandbox, max_frame_pixels=96 * 64)
    sandbox.run(camera.play({0: bomb} | {slot + 4: packets[slot] for slot in range(8)}))
    assert camera.live.lost == [0]
    assert sorted(camera.windows) == [1, 2]
    assert "pixels" in camera.told[0]


def test_a_decoder_finds_no_memory_above_its_limit(sandbox):
    noise = np.random.default_rng(1).integers(0, 255, (1, 1024, 1024, 3), dtype=np.uint8)
    (packet,) = encode(noise)
    wide = EncodedCamera(sandbox)
    sandbox.run(wide.play({0: packet}))
    assert wide.live.num_fed == 1
    narrow = EncodedCamera(sandbox, decoder_bytes=1 << 20)
    sandbox.run(narrow.play({0: packet}))
    assert narrow.live.num_fed == 0
    assert dict(narrow.intake.reasons) == {"unreadable": 1}


def test_a_stream_may_change_its_size_with_a_key_picture(sandbox, packets):
    small = encode(street(NUM_FRAMES, seed=3, height=64, width=80), gop=GOP)
    camera = EncodedCamera(sandbox)
    sandbox.run(camera.play(by_slot([*packets[:6], *small[6:16]])))
    # Windows 0 and 2 have one size; the second half of window 1 does not fit its first half.
    assert camera.windows == {0: window(0), 1: [4, 5], 2: window(2), 3: window(3)}
    sizes = {one.number: one.frames[0].shape[1] for one in camera.live.ended}
    assert sizes == {0: 96, 1: 96, 2: 80, 3: 80}


def test_a_worn_process_is_replaced_at_a_key_picture(sandbox, packets, monkeypatch):
    monkeypatch.setattr("headstart_server.sandbox.worker.MAX_JOBS", 8)
    camera, pids = EncodedCamera(sandbox), []

    async def play() -> None:
        running = asyncio.ensure_future(camera.intake.run())
        for slot, packet in enumerate(packets[:24]):
            camera.put(packet, slot)
            await camera.all_taken()
            pids.append(camera.process.pid)
            assert camera.process.num_threads() == 1
        await camera.end(running)

    sandbox.run(play())
    changes = [slot for slot in range(1, 24) if pids[slot] != pids[slot - 1]]
    assert changes == [12]
    assert camera.windows == {number: window(number) for number in range(6)}
    camera.check_frames(decode(packets))


@pytest.mark.parametrize("ending", ["ended", "cancelled", "refused"])
def test_no_process_is_left(sandbox, packets, ending):
    camera = EncodedCamera(sandbox)
    found: list[psutil.Process] = []

    async def play() -> None:
        running = asyncio.ensure_future(camera.intake.run())
        for slot, packet in enumerate(packets[:4]):
            camera.put(packet, slot)
            await camera.all_taken()
        found.append(camera.process)
        match ending:
            case "ended":
                camera.intake.end()
            case "cancelled":
                camera.process.suspend()
                camera.put(packets[4], 4)
                await asyncio.sleep(0.05)  # plays: a client that leaves while a packet is decoded
                running.cancel()
            case "refused":
                for number in range(MAX_UNREADABLE):
                    camera.put(b"rubbish", (number + 1) * NUM_SLOTS)
        await asyncio.wait((running,))
        if ending == "refused":
            assert isinstance(running.exception(), RefusedError)

    sandbox.run(play())
    found[0].wait(60)
    assert not found[0].is_running()


def test_a_camera_is_either_of_pictures_or_of_encoded_video(sandbox, packets):
    async def put(codec: Codec | None, kind: MediaKind) -> None:
        camera = EncodedCamera(sandbox, codec)  # type: ignore[arg-type]
        camera.put(packets[0], 0, kind)

    sandbox.run(put(Codec.H264, MediaKind.ENCODED))
    sandbox.run(put(None, MediaKind.PICTURE))
    for codec, kind in ((None, MediaKind.ENCODED), (Codec.H264, MediaKind.PICTURE)):
        with pytest.raises(RefusedError, match="codec"):
            sandbox.run(put(codec, kind))
