"""Real workers, real files; some of them broken, and some workers really killed."""

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from headstart.errors import MediaError
from headstart.live.sources.confined.confinement import ResourceLimits
from headstart.media.events import Events, SensorSize
from headstart_events.writers.writing import write_recording
from headstart_server.limits import Limits
from headstart_server.media.decoder import MediaDecoder, environment, max_output_bytes
from headstart_server.media.fetcher import EventPart, Fetched
from headstart_server.refusal import RefusedError
from headstart_server.sandbox import worker as worker_module
from headstart_server.sandbox.pool import FairQueue, Job, Pool
from headstart_server.sandbox.worker import WAIT_TIMES, BufferSizes, SlowJobError, Worker
from rig.waiting import until
from tests.serve.attacks import still_video

pytestmark = pytest.mark.slow
pytest.importorskip("vllm", reason="the loaders are vLLM's")

LIMITS = Limits(decoder_bytes=512 << 20, max_clip_pixels=16 << 20)
WHOLE = EventPart("")


class Sandbox:
    """A pool on an event loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = Pool(
            {"media_io_kwargs": {"video": {"num_frames": 8}}, "vocabulary": None},
            environment(LIMITS),
            FairQueue(2, 2),
            BufferSizes(32 << 20, max_output_bytes(LIMITS)),
            ResourceLimits(cpu_s=60, memory_bytes=LIMITS.decoder_bytes, has_threads=True),
        )
        self.decoder = MediaDecoder(self.pool, LIMITS)
        self.loop.call_soon(self.pool.start)

    def run(self, work: Awaitable[object]) -> object:
        async def awaited() -> object:
            return await work

        return self.loop.run_until_complete(awaited())

    def fork_server(self) -> psutil.Process:
        return next(
            child
            for child in psutil.Process().children()
            # Of a child that has ended, another test's, the command line cannot be read.
            if child.status() != psutil.STATUS_ZOMBIE
            and "headstart_server.sandbox.fork_server" in child.cmdline()
        )


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.pool.close()
    sandbox.run(until(lambda: len(asyncio.all_tasks()) == 1, "its end"))
    sandbox.loop.close()


@pytest.fixture(scope="module")
def street(tmp_path_factory) -> bytes:
    from headstart_lab.street import street_video

    path = tmp_path_factory.mktemp("street") / "street.mp4"
    street_video(num_frames=16, width=96, height=64).write(path)
    return path.read_bytes()


def test_a_video_is_what_vllm_makes_of_it(sandbox, street):
    from vllm.multimodal.media import ImageMediaIO, VideoMediaIO

    frames, metadata = VideoMediaIO(ImageMediaIO(), num_frames=8).load_bytes(street).media
    found = sandbox.run(sandbox.decoder.video("a", Fetched(street)))
    assert np.array_equal(found.frames, frames)
    assert found.metadata == metadata


def test_a_list_of_jpegs_is_what_vllm_makes_of_it(sandbox):
    import base64

    from vllm.multimodal.media import ImageMediaIO, VideoMediaIO

    pictures = []
    for shade in (10, 100, 200):
        file = io.BytesIO()
        Image.new("RGB", (32, 24), (shade, 0, 255 - shade)).save(file, "JPEG")
        pictures.append(base64.b64encode(file.getvalue()).decode())
    text = ",".join(pictures)
    media = VideoMediaIO(ImageMediaIO(), num_frames=8).load_base64("video/jpeg", text).media
    found = sandbox.run(sandbox.decoder.video("a", Fetched(text.encode(), is_jpegs=True)))
    assert np.array_equal(found.frames, media[0])
    assert found.metadata == media[1]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_a_picture_is_what_vllm_makes_of_it(sandbox, kind, mode):
    from vllm.multimodal.media import ImageMediaIO

    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 4), np.uint8)
    file = io.BytesIO()
    picture = Image.fromarray(pixels, "RGBA").convert(mode)
    if kind == "JPEG" and mode in ("RGBA", "P"):
        picture = picture.convert("RGB")
    picture.save(file, kind)
    expected = ImageMediaIO().load_bytes(file.getvalue()).media
    found = sandbox.run(sandbox.decoder.picture("a", Fetched(file.getvalue()))).image
    assert found.mode == expected.mode
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".aedat4", ".raw", ".dat", ".csv"])
def test_events_of_every_format(sandbox, suffix, tmp_path):
    generator = np.random.default_rng(1)
    t = np.sort(generator.integers(0, 50_000, 5_000))
    x, y = generator.integers(0, 64, 5_000), generator.integers(0, 48, 5_000)
    events = Events.checked(x, y, t, generator.integers(0, 2, 5_000), SensorSize(64, 48))
    path = tmp_path / f"events{suffix}"
    write_recording(path, [events], events.sensor)
    fetched = Fetched(path.read_bytes(), suffix=suffix)
    part = EventPart("", 0, 50_000, events.sensor if suffix == ".csv" else None, "")
    found = sandbox.run(sandbox.decoder.events("a", fetched, part))
    assert found.digest() == events.digest()
    picture = (
        sandbox.run(sandbox.decoder.filmstrip("a", fetched)) if suffix == ".npz" else b"\x89PNG"
    )
    assert picture.startswith(b"\x89PNG")


def refused(sandbox: Sandbox, work: Callable[[], Awaitable[object]]) -> str:
    with pytest.raises(RefusedError) as caught:
        sandbox.run(work())
    assert caught.value.status == 400
    return caught.value.message


def test_rubbish_is_refused_and_its_worker_serves_on(sandbox, street):
    for content in (b"", b"rubbish", street[: len(street) // 2], b"\x00" * 1000):
        refused(sandbox, lambda content=content: sandbox.decoder.video("a", Fetched(content)))
        refused(sandbox, lambda content=content: sandbox.decoder.picture("a", Fetched(content)))
        refused(sandbox, lambda c=content: sandbox.decoder.events("a", Fetched(c), WHOLE))
    assert sandbox.run(sandbox.decoder.video("a", Fetched(street))).frames.shape[0] == 8


def test_large_media_are_refused_before_they_are_decoded(sandbox, tmp_path):
    wide = still_video(tmp_path / "wide.mp4", 2560, 1440, 10).read_bytes()
    assert "pixels" in refused(sandbox, lambda: sandbox.decoder.video("a", Fetched(wide)))
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, "PNG")
    assert "pixels" in refused(
        sandbox, lambda: sandbox.decoder.picture("a", Fetched(file.getvalue()))
    )


def video_job(sandbox: Sandbox, content: bytes, cpu_s: float) -> Job:
    bounds = asdict(sandbox.decoder._bounds)
    request = {"job": "video", "bounds": bounds, "is_jpegs": False}
    return Job(request, content, lambda result, worker: result["shape"][0], cpu_s)


@pytest.fixture
def patient(monkeypatch) -> None:
    """However little of a busy machine a worker gets, its job is not ended by the clock."""
    monkeypatch.setattr("headstart_server.sandbox.worker.WAIT_TIMES", 1000)


def test_a_job_that_uses_up_its_processor_time_is_killed(sandbox, street, patient):
    rows = 3_000_000  # seconds of reading numbers
    recording = Fetched(b"t,x,y,p\n" + b"0,0,0,0\n" * rows, suffix=".csv")
    part = EventPart("", 0, 1000, SensorSize(64, 48))
    request = {"job": "events", **sandbox.decoder._window(recording, part)}
    job = Job(request, recording.content, lambda result, worker: None, cpu_s=0.5)
    killed = sandbox.pool.num_killed
    with pytest.raises(SlowJobError, match=r"more than 0\.5 s of processor time"):
        sandbox.run(sandbox.pool.run("busy", job))
    assert sandbox.pool.num_killed == killed + 1
    assert sandbox.run(sandbox.decoder.video("busy", Fetched(street))).frames.shape[0] == 8


def test_a_job_that_does_nothing_is_killed_too(sandbox, street):
    stop(sandbox, "still")
    killed = sandbox.pool.num_killed
    with pytest.raises(SlowJobError, match=f"not done after {0.25 * WAIT_TIMES:g} s"):
        sandbox.run(sandbox.pool.run("still", video_job(sandbox, street, cpu_s=0.25)))
    assert sandbox.pool.num_killed == killed + 1
    assert sandbox.run(sandbox.decoder.video("still", Fetched(street))).frames.shape[0] == 8


def test_a_job_that_waits_for_a_processor_is_not_refused(sandbox, street, patient):
    """As on a machine that gives the worker none for longer than the job may compute."""
    cpu_s, process = 2.0, stop(sandbox, "waiting")
    killed = sandbox.pool.num_killed

    async def decode_late() -> int:
        asyncio.get_running_loop().call_later(1.5 * cpu_s, process.resume)
        return await sandbox.pool.run("waiting", video_job(sandbox, street, cpu_s))

    assert sandbox.run(decode_late()) == 8
    assert sandbox.pool.num_killed == killed


def test_a_worker_that_starts_threads_without_end_is_ended():
    program = (
        "import sys, threading, time\n"
        "for _ in range(int(sys.argv[1])):\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "print(flush=True)\n"
    )
    for num_threads, is_left in (
        (worker_module.MAX_THREADS - 1, True),
        (worker_module.MAX_THREADS, False),
    ):
        command = [sys.executable, "-c", program, str(num_threads)]
        ours, theirs = socket.socketpair()
        with theirs, subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()  # they run
            worker = Worker(ours, os.pidfd_open(process.pid))
            worker.end_if_crowded()
            if not is_left:
                assert process.wait(60) == -signal.SIGKILL
            assert worker.is_alive == is_left
            worker.kill()


def test_the_pool_looks_at_its_workers(sandbox, street, monkeypatch):
    worker = sandbox.run(sandbox.pool._worker("crowded"))
    sandbox.pool._idle.append(worker)
    assert worker.is_alive
    monkeypatch.setattr(worker_module, "MAX_THREADS", 0)
    sandbox.run(until(lambda: not worker.is_alive, "the crowded worker's end"))
    monkeypatch.undo()
    assert sandbox.run(sandbox.decoder.video("crowded", Fetched(street))).frames.shape[0] == 8


def stop(sandbox: Sandbox, tenant: str) -> psutil.Process:
    """Suspend the worker that gets this tenant's next job."""
    worker = sandbox.run(sandbox.pool._worker(tenant))
    sandbox.pool._idle.append(worker)
    process = psutil.Process(pid_of(worker))
    process.suspend()
    return process


def pid_of(worker: Worker) -> int:
    """The pid that the kernel states for a worker's pidfd."""
    text = Path(f"/proc/self/fdinfo/{worker._pidfd}").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pid:")))


def test_a_worker_killed_while_idle_is_replaced(sandbox, street):
    sandbox.run(sandbox.decoder.video("a", Fetched(street)))
    for worker in sandbox.pool._idle:
        process = psutil.Process(pid_of(worker))
        process.kill()
        process.wait(10)
    assert sandbox.run(sandbox.decoder.video("a", Fetched(street))).frames.shape[0] == 8


def test_no_worker_sees_bytes_of_two_tenants(sandbox, street):
    pids: dict[str, set[int]] = {}
    for tenant in ("a", "b", "c", "a", "b", "c"):
        sandbox.run(sandbox.decoder.video(tenant, Fetched(street)))
        pids.setdefault(tenant, set()).add(
            next(pid_of(w) for w in sandbox.pool._idle if w.tenant == tenant)
        )
        assert len(sandbox.pool._idle) <= 2
    assert sum(map(len, pids.values())) == len(set.union(*pids.values()))


def test_a_killed_fork_server_is_replaced(sandbox, street):
    sandbox.run(sandbox.decoder.video("c", Fetched(street)))  # it is up
    before = sandbox.fork_server().pid
    os.kill(before, signal.SIGKILL)
    for tenant in "defg":
        found = sandbox.run(sandbox.decoder.video(tenant, Fetched(street)))
        assert found.frames.shape[0] == 8
    assert sandbox.fork_server().pid != before


def test_a_cancelled_job_ends(sandbox, street):
    async def cancel() -> None:
        task = asyncio.ensure_future(sandbox.decoder.video("cancelled", Fetched(street)))
        await asyncio.sleep(0.001)  # plays: a client that leaves at once
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    for _ in range(5):
        sandbox.run(cancel())
    assert sandbox.run(sandbox.decoder.video("cancelled", Fetched(street))).frames.shape[0] == 8


@pytest.mark.parametrize(
    "result",
    [
        {"shape": [1, 2, 3], "metadata": {}},
        {"shape": [1 << 40, 2, 2, 3], "metadata": {}},
        {"shape": [-1, -1, 1, 3], "metadata": {}},
        {"shape": [1, 2, 2, 3], "metadata": {"x": {"y": 1}}},
        {"shape": [True, 2, 2, 3], "metadata": {}},
        {"shape": [1, 4000, 4000, 3], "metadata": [1]},
        {},
    ],
    ids=json.dumps,
)
def test_a_workers_result_is_checked(sandbox, result):
    worker = sandbox.run(sandbox.pool._worker("liar"))
    with pytest.raises((ValueError, LookupError, MediaError)):
        sandbox.decoder._read_video(result, worker)
    worker.kill()
