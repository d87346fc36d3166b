"""The process that decodes a stranger's stream: what it may do, and what is believed of it."""

import io
import json
import resource
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import av
import numpy as np
import psutil
import pytest

from headstart.errors import MediaError
from headstart.live.sources.confined import boxed_stream, confinement
from headstart.live.sources.confined.boxed_stream import BoxedStream, StreamLimits
from headstart.live.sources.confined.shares import MAX_SAVED_S, Shares
from headstart.live.sources.confined.stream_worker import HEADER, WITHOUT_TIME, small_video
from rig.waiting import wait_until
from tests.sandbox.test_confinement import ESCAPES

# The decoder, taken over: once confined, it tries every way out and reports as an error.
TAKEN_OVER = """
import _thread, ctypes, io, json, mmap, os, resource, signal, socket, sys
from headstart.errors import MediaError
from headstart.media.stream import StreamBounds
from headstart.live.sources.confined import stream_worker
libc = ctypes.CDLL(None, use_errno=True)
for name in ("ptrace", "process_vm_readv", "unshare", "prctl", "syscall"):
    getattr(libc, name)
escapes = {name: compile(code, name, "eval") for name, code in json.loads(sys.argv[1]).items()}
ours = socket.socket(fileno=os.dup(0))
decode = stream_worker.decode_stream
def attack(content, bounds):
    if isinstance(content, io.BytesIO):
        return decode(content, bounds)
    out = []
    for name, escape in escapes.items():
        try:
            if eval(escape) != -1:
                out.append(name)
        except (OSError, RuntimeError, ValueError):
            pass
    raise MediaError("escaped: " + json.dumps(out))
stream_worker.decode_stream = attack
stream_worker.work(socket.socket(fileno=0), StreamBounds(), 64 << 20)
os._exit(0)
"""


def run_taken_over(program, escapes):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", program, json.dumps(escapes)]
        subprocess.run(command, stdin=theirs.fileno(), timeout=60, check=False)
        theirs.close()
        said = b""
        while received := ours.recv(1 << 16):
            said += received
    return json.loads(said.partition(b"escaped: ")[2])


@pytest.mark.skipif(not confinement.has_filter(), reason="no seccomp filter for this machine")
def test_a_decoder_that_was_taken_over_reaches_nothing():
    assert run_taken_over(TAKEN_OVER, ESCAPES) == []


def test_the_escapes_work_without_confinement():
    """Otherwise the test above could not fail."""
    free = TAKEN_OVER.replace(
        "stream_worker.decode_stream = attack",
        "stream_worker.decode_stream, stream_worker.confine = attack, lambda limits: None",
    )
    names = ("open a file", "open a socket", "open a pipe", "start a thread")
    possible = {name: ESCAPES[name] for name in names}
    assert run_taken_over(free, possible) == list(possible)


def boxed(content, limits=None):
    box = BoxedStream(limits or StreamLimits(silent_s=5.0))
    writer = threading.Thread(target=lambda: (box.write(content), box.end()))
    writer.start()
    try:
        return list(box.frames())
    finally:
        writer.join()
        box.close()


def test_frames_come_out():
    frames = boxed(small_video())
    assert [time_us for time_us, _ in frames] == [0, 125_000, 250_000, 375_000]
    assert {frame.shape for _, frame in frames} == {(16, 16, 3)}


def encoded(picture, codec="mpeg4", container_format="mpegts"):
    """Four times the same picture, as a stream."""
    file = io.BytesIO()
    with av.open(file, "w", format=container_format) as container:
        stream = container.add_stream(codec, rate=8)
        stream.height, stream.width = picture.shape[:2]
        for _ in range(4):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize("codec", ["libx264", "libx265", "libvpx-vp9", "libsvtav1"])
def test_decoders_need_no_thread(codec):
    """They may start none, and neither may what turns their pictures into RGB."""
    if codec not in av.codecs_available:
        pytest.skip(f"this FFmpeg has no {codec}")
    picture = np.full((240, 320, 3), 128, np.uint8)
    assert len(boxed(encoded(picture, codec, "matroska"))) == 4


@pytest.mark.parametrize("width", [64, 168, 346])
def test_pictures_of_any_width_come_out(width):
    """Also of those that FFmpeg keeps with gaps between their rows."""
    across = np.linspace(0, 255, width).astype(np.uint8)
    picture = np.broadcast_to(across[None, :, None], (48, width, 3)).copy()
    frames = boxed(encoded(picture))
    assert len(frames) == 4
    for _, frame in frames:
        assert frame.shape == picture.shape
        assert np.abs(frame.astype(int) - picture).mean() < 8


class Clock:
    """Stands until the test turns it."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@contextmanager
def endless(share):
    """A process that decodes 1280x720 as fast as it can: of 1,000 pictures a second it gives 60."""
    file = io.BytesIO()
    with av.open(file, "w", format="mpegts") as container:
        stream = container.add_stream("mpeg4", rate=1000)
        stream.height, stream.width = 720, 1280
        for _ in range(100):
            picture = np.zeros((720, 1280, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    box = BoxedStream(StreamLimits(silent_s=600), share)

    def feed():
        with suppress(OSError):
            while True:
                box.write(file.getvalue())

    def look():
        with suppress(MediaError):
            for _ in box.frames():
                pass

    threads = [threading.Thread(target=feed), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    try:
        yield psutil.Process(box.pid)
    finally:
        box.kill()
        for thread in threads:
            thread.join()
        box.close()


def used_s(process):
    times = process.cpu_times()
    return times.user + times.system


def test_a_process_that_has_used_its_share_stops_until_there_is_more():
    clock = Clock()
    with endless(Shares(1.0, clock).share()) as process:
        for allowed_s in (MAX_SAVED_S, MAX_SAVED_S + 1):
            clock.now_s = allowed_s - MAX_SAVED_S
            wait_until(
                lambda allowed_s=allowed_s: (
                    process.status() == psutil.STATUS_STOPPED and used_s(process) >= allowed_s
                )
            )
            # It is looked at ten times a second, and no processor runs it twice at once.
            assert used_s(process) < allowed_s + 0.5


def test_a_process_that_decodes_streams_lets_others_go_first():
    with endless(Shares(1.0).share()) as process:
        assert process.nice() == boxed_stream.NICENESS > 0


def test_a_stopped_process_is_not_waited_for_and_can_be_ended():
    """Else a camera whose tenant has many would count as lost."""
    clock = Clock()
    share = Shares(1.0, clock).share()
    box = BoxedStream(StreamLimits(silent_s=0.5), share)
    share.spend(MAX_SAVED_S)
    found = []

    def look():
        with suppress(MediaError):
            found.extend(box.frames())
        found.append("the end")

    thread = threading.Thread(target=look)
    thread.start()
    process = psutil.Process(box.pid)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED)
    box.write(small_video())
    box.end()
    clock.now_s += 60
    wait_until(lambda: found)
    thread.join()
    assert len(found) == 5
    box.close()


def test_memory_is_bounded():
    """The decoder of 1024x1024 pictures finds no room in 1 MB."""
    noise = np.random.default_rng(1).integers(0, 255, (1024, 1024, 3), dtype=np.uint8)
    content = encoded(noise)
    assert len(boxed(content)) == 4
    with pytest.raises(MediaError):
        boxed(content, StreamLimits(memory_bytes=1 << 20, silent_s=5.0))


@pytest.fixture
def lying(monkeypatch, tmp_path):
    """A process in the decoder's place that says what the test wants."""

    def start(said):
        program = tmp_path / "liar.py"
        program.write_text(
            "import socket, time\n"
            "sock = socket.socket(fileno=0)\n"
            f"sock.sendall({said!r})\n"
            "time.sleep(60)\n"
        )
        monkeypatch.setattr(boxed_stream, "WORKER", (str(program),))
        return BoxedStream(StreamLimits(silent_s=1.0))

    return start


HELLO = HEADER.pack(WITHOUT_TIME, 0, 0)


@pytest.mark.parametrize(
    "said",
    [
        HELLO + HEADER.pack(0, 2**32 - 1, 2**32 - 1),
        HELLO + HEADER.pack(0, 2**31, 1),
        HELLO + HEADER.pack(0, 4, 0),
        HELLO + HEADER.pack(0, 16, 16) + b"not all of it",
        HELLO + HEADER.pack(0, 0, 2**32 - 1) + b"\x1b[2J" * 200,
        HELLO,
    ],
)
def test_a_decoder_that_lies_is_not_believed(lying, said):
    box = lying(said)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MediaError) as error:
        list(box.frames())  # it says no more, and does not end by itself
    assert str(error.value).isprintable()
    assert len(str(error.value)) <= 500
    box.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 100_000  # kB


def test_a_time_beyond_all_years_counts_as_none(lying):
    box = lying(HELLO + HEADER.pack(2**63 - 1, 1, 1) + b"rgb")
    time_us, frame = next(box.frames())
    assert time_us is None
    assert frame.tobytes() == b"rgb"
    box.close()
