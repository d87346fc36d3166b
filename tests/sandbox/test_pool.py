"""Real workers, real files; some of them broken, and some workers really killed."""

import asyncio
import io
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart.media.writers.writing import write_recording
from headstart.sandbox.confinement import Allowance
from headstart.sandbox.pool import Pool, Shares
from headstart.sandbox.worker import Room, Worker
from headstart.serve.decoders import environment
from headstart.serve.decoding import Decoding, max_output_bytes
from headstart.serve.fetching import EventPart, Fetched
from headstart.serve.refusal import RefusedError
from headstart.serve.settings import Limits

pytestmark = pytest.mark.slow
pytest.importorskip("vllm", reason="the loaders are vLLM's")

LIMITS = Limits(decode_s=3.0, decoder_bytes=512 << 20, max_clip_pixels=16 << 20)
WHOLE = EventPart("", None, None, None, "")


class Ground:
    """A pool on an event loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = Pool(
            {"media_io_kwargs": {"video": {"num_frames": 8}}, "vocabulary": None},
            environment(LIMITS),
            Shares(2, 2),
            Room(32 << 20, max_output_bytes(LIMITS)),
            Allowance(cpu_s=60, memory_bytes=LIMITS.decoder_bytes),
        )
        self.decoding = Decoding(self.pool, LIMITS)
        self.loop.call_soon(self.pool.start)

    def run(self, work: Awaitable[object]) -> object:
        async def awaited() -> object:
            return await work

        return self.loop.run_until_complete(awaited())

    def nursery(self) -> psutil.Process:
        return next(
            child
            for child in psutil.Process().children()
            if "headstart.sandbox.nursery" in child.cmdline()
        )


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    ground = Ground()
    yield ground
    ground.pool.close()
    ground.run(asyncio.sleep(0.1))
    ground.loop.close()


@pytest.fixture(scope="module")
def street(tmp_path_factory) -> bytes:
    from headstart.lab.street import street_video

    path = tmp_path_factory.mktemp("street") / "street.mp4"
    street_video(num_frames=16, width=96, height=64).write(path)
    return path.read_bytes()


def test_a_video_is_what_vllm_makes_of_it(ground, street):
    from vllm.multimodal.media import ImageMediaIO, VideoMediaIO

    frames, told = VideoMediaIO(ImageMediaIO(), num_frames=8).load_bytes(street).media
    found = ground.run(ground.decoding.video("a", Fetched(street)))
    assert np.array_equal(found.frames, frames)
    assert found.told == told


def test_a_list_of_jpegs_is_what_vllm_makes_of_it(ground):
    import base64

    from vllm.multimodal.media import ImageMediaIO, VideoMediaIO

    pictures = []
    for shade in (10, 100, 200):
        file = io.BytesIO()
        Image.new("RGB", (32, 24), (shade, 0, 255 - shade)).save(file, "JPEG")
        pictures.append(base64.b64encode(file.getvalue()).decode())
    text = ",".join(pictures)
    media = VideoMediaIO(ImageMediaIO(), num_frames=8).load_base64("video/jpeg", text).media
    found = ground.run(ground.decoding.video("a", Fetched(text.encode(), is_jpegs=True)))
    assert np.array_equal(found.frames, media[0])
    assert found.told == media[1]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_a_picture_is_what_vllm_makes_of_it(ground, kind, mode):
    from vllm.multimodal.media import ImageMediaIO

    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 4), np.uint8)
    file = io.BytesIO()
    picture = Image.fromarray(pixels, "RGBA").convert(mode)
    if kind == "JPEG" and mode in ("RGBA", "P"):
        picture = picture.convert("RGB")
    picture.save(file, kind)
    expected = ImageMediaIO().load_bytes(file.getvalue()).media
    found = ground.run(ground.decoding.picture("a", Fetched(file.getvalue()))).image
    assert found.mode == expected.mode
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".aedat4", ".raw", ".dat", ".csv"])
def test_events_of_every_format(ground, suffix, tmp_path):
    generator = np.random.default_rng(1)
    t = np.sort(generator.integers(0, 50_000, 5_000))
    x, y = generator.integers(0, 64, 5_000), generator.integers(0, 48, 5_000)
    events = Events.checked(x, y, t, generator.integers(0, 2, 5_000), SensorSize(64, 48))
    path = tmp_path / f"events{suffix}"
    write_recording(path, [events], events.sensor)
    fetched = Fetched(path.read_bytes(), suffix=suffix)
    part = EventPart("", 0, 50_000, events.sensor if suffix == ".csv" else None, "")
    found = ground.run(ground.decoding.events("a", fetched, part))
    assert found.digest() == events.digest()
    picture = ground.run(ground.decoding.film("a", fetched)) if suffix == ".npz" else b"\x89PNG"
    assert picture.startswith(b"\x89PNG")


def refused(ground: Ground, work: Callable[[], Awaitable[object]]) -> str:
    with pytest.raises(RefusedError) as caught:
        ground.run(work())
    assert caught.value.status == 400
    return caught.value.message


def test_rubbish_is_refused_and_its_worker_goes_on(ground, street):
    for content in (b"", b"rubbish", street[: len(street) // 2], b"\x00" * 1000):
        refused(ground, lambda content=content: ground.decoding.video("a", Fetched(content)))
        refused(ground, lambda content=content: ground.decoding.picture("a", Fetched(content)))
        refused(ground, lambda c=content: ground.decoding.events("a", Fetched(c), WHOLE))
    assert ground.run(ground.decoding.video("a", Fetched(street))).frames.shape[0] == 8


def test_what_would_be_too_large_is_refused_before_it_is_decoded(ground, tmp_path):
    from tests.serve.attacks import still_video

    wide = still_video(tmp_path / "wide.mp4", 2560, 1440, 10).read_bytes()
    assert "pixels" in refused(ground, lambda: ground.decoding.video("a", Fetched(wide)))
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, "PNG")
    assert "pixels" in refused(
        ground, lambda: ground.decoding.picture("a", Fetched(file.getvalue()))
    )


def test_a_job_that_overstays_is_killed_and_the_next_one_done(ground, street):
    worker = ground.run(ground.pool._worker("slow"))
    os.kill(pid_of(worker), signal.SIGSTOP)
    ground.pool._idle.append(worker)
    killed = ground.pool.num_killed
    message = refused(ground, lambda: ground.decoding.video("slow", Fetched(street)))
    assert "longer than 3 s" in message
    assert ground.pool.num_killed == killed + 1
    assert ground.run(ground.decoding.video("slow", Fetched(street))).frames.shape[0] == 8


def pid_of(worker: Worker) -> int:
    """Of the worker's process, as the kernel tells of its pidfd."""
    text = Path(f"/proc/self/fdinfo/{worker._pidfd}").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pid:")))


def test_a_worker_killed_while_idle_is_replaced(ground, street):
    ground.run(ground.decoding.video("a", Fetched(street)))
    for worker in ground.pool._idle:
        process = psutil.Process(pid_of(worker))
        process.kill()
        process.wait(10)
    assert ground.run(ground.decoding.video("a", Fetched(street))).frames.shape[0] == 8


def test_no_worker_sees_bytes_of_two_tenants(ground, street):
    pids: dict[str, set[int]] = {}
    for tenant in ("a", "b", "c", "a", "b", "c"):
        ground.run(ground.decoding.video(tenant, Fetched(street)))
        pids.setdefault(tenant, set()).add(
            next(pid_of(w) for w in ground.pool._idle if w.tenant == tenant)
        )
        assert len(ground.pool._idle) <= 2
    assert sum(map(len, pids.values())) == len(set.union(*pids.values()))


def test_a_killed_nursery_is_replaced(ground, street):
    before = ground.nursery().pid
    os.kill(before, signal.SIGKILL)
    for tenant in "defg":
        found = ground.run(ground.decoding.video(tenant, Fetched(street)))
        assert found.frames.shape[0] == 8
    assert ground.nursery().pid != before


def test_a_client_that_leaves_ends_its_job(ground, street):
    async def leave() -> None:
        task = asyncio.ensure_future(ground.decoding.video("leaving", Fetched(street)))
        await asyncio.sleep(0.001)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    for _ in range(5):
        ground.run(leave())
    assert ground.run(ground.decoding.video("leaving", Fetched(street))).frames.shape[0] == 8


@pytest.mark.parametrize(
    "told",
    [
        {"shape": [1, 2, 3], "told": {}},
        {"shape": [1 << 40, 2, 2, 3], "told": {}},
        {"shape": [-1, -1, 1, 3], "told": {}},
        {"shape": [1, 2, 2, 3], "told": {"x": {"y": 1}}},
        {"shape": [True, 2, 2, 3], "told": {}},
        {"shape": [1, 4000, 4000, 3], "told": [1]},
        {},
    ],
    ids=json.dumps,
)
def test_a_worker_is_not_believed(ground, told):
    worker = ground.run(ground.pool._worker("liar"))
    with pytest.raises((ValueError, LookupError, MediaError)):
        ground.decoding._read_video(told, worker)
    worker.end()
