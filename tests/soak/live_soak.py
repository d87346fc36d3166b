"""Watches live cameras for a long time while things go wrong, and looks at what is left.

    python -m tests.soak.live_soak lab/headstart_lab/pair/target --minutes 30

- A camera on RTSP is unplugged every minute and comes back: its server is killed and started again.
- The answers about another camera are read by somebody slow.
- Every ten seconds a session begins and is abandoned: closed in the middle of an answer, dropped
  without a word, or ended and never read.

Prints a line a minute, then one line of JSON. It ends with an error where an answer was lost or
came twice, where a camera was not answered about after it came back, where the engine still held
blocks of its cache at the end, where threads or processes were left, or where memory grew. Needs
GStreamer's RTSP server (`make rtsp`).
"""

import argparse
import contextlib
import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")

import psutil

from headstart import Headstart, LiveSession, Windows, watch
from headstart.live.sources.opening import open_source
from headstart.live.watching import Watch
from headstart_lab.language.questions import Question
from rig.camera import forget_prefixes, in_loop
from rig.footage import children, encode
from rig.gstreamer import HAS_SERVER, pipeline, rtsp_server
from rig.rough_camera import RoughCamera

ENGINE = {
    "dtype": "float32",
    "enforce_eager": True,
    "kv_cache_memory_bytes": 2**28,
    # vLLM keeps 4 GiB of processed pictures by default, which half an hour does not fill.
    "mm_processor_cache_gb": 0.125,
}
WINDOWS = Windows(2.0)
QUESTION, MAX_TOKENS = Question.DESCRIBE.usual, 64
FPS, FILM_S = 10, 240
UNPLUG_EVERY_S, UNPLUGGED_S, BACK_WITHIN_S = 60.0, 4.0, 45.0
SLOW_READER_S = 45.0
ABANDON_EVERY_S = 10.0
SAMPLE_S = 15.0
MAX_GROWTH_MIB = 64.0
"""Between the second quarter of the time and the last."""


@dataclass
class Reader:
    """Reads the answers about one camera, and keeps which windows they were about."""

    watched: Watch
    pause_s: float
    starts_us: list[int] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    hurry: threading.Event = field(default_factory=threading.Event)
    """Set where a slow reader is to read what is left without a pause."""

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for answer in self.watched:
            self.starts_us.append(answer.start_us)
            self.waits_s.append(answer.wait_s)
            self.read_s.append(time.monotonic())
            self.hurry.wait(self.pause_s)

    def end(self) -> None:
        """Wait for the last answer."""
        self.hurry.set()
        self._thread.join()

    def faults(self) -> Iterator[str]:
        """Whether an answer was lost, doubled or out of order."""
        ((name, counts),) = self.watched.counts.items()
        if len(self.starts_us) != counts.live.asked:
            yield f"{name}: {counts.live.asked} asked, {len(self.starts_us)} answers read"
        if any(later <= earlier for earlier, later in pairwise(self.starts_us)):
            yield f"{name}: answers out of order, or twice"

    def figures(self) -> dict[str, Any]:
        """What was read, and what became of the camera's frames and windows."""
        ((_, counts),) = self.watched.counts.items()
        return {
            "answers": len(self.starts_us),
            "wait_s_p50": round(median(self.waits_s), 3),
            "source": asdict(counts.source),
            "live": asdict(counts.live),
        }


class Plug:
    """A camera's RTSP server, which is killed and started again on the same port."""

    def __init__(self, film: Path) -> None:
        self._mounts = ["/camera", pipeline(film, "rtph264pay config-interval=-1")]
        self._server = contextlib.ExitStack()
        self._port = "0"
        self.plug()

    @property
    def address(self) -> str:
        return f"rtsp://127.0.0.1:{self._port}/camera"

    def plug(self) -> None:
        self._port, _ = self._server.enter_context(rtsp_server(self._mounts, port=self._port))

    def pull(self) -> None:
        self._server.close()


@dataclass
class Unplugging:
    """Pulls the plug again and again, and times the next answer after it is back."""

    plug: Plug
    reader: Reader
    back_s: list[float] = field(default_factory=list)
    lost: int = 0

    def once(self) -> None:
        """Unplug, plug in, wait for an answer."""
        self.plug.pull()
        time.sleep(UNPLUGGED_S)
        num_before, plugged_s = len(self.reader.read_s), time.monotonic()
        self.plug.plug()
        # An answer about a window of before may still come: two say that the camera is back.
        while len(self.reader.read_s) < num_before + 2:
            if time.monotonic() > plugged_s + BACK_WITHIN_S:
                self.lost += 1
                return
            time.sleep(0.05)
        self.back_s.append(self.reader.read_s[num_before + 1] - plugged_s)


@dataclass
class Abandoned:
    """Begins sessions that nobody ends as one should."""

    headstart: Headstart
    camera: RoughCamera
    number: int = 0

    def once(self) -> None:
        """Feed a window and a half, then leave in one of three ways."""
        self.number += 1
        live = LiveSession(self.headstart.session(f"abandoned {self.number}"), WINDOWS)
        standing = live.standing(QUESTION, max_tokens=MAX_TOKENS)
        start_us = self.number * 10_000_000
        for slot in range(12):
            time_us = slot * round(WINDOWS.seconds * 1e6) // 8
            live.feed(self.camera.frame(start_us % (FILM_S * 1_000_000) + time_us), time_us)
            time.sleep(0.02)
        if self.number % 3 == 0:
            live.close()
        elif self.number % 3 == 1:
            live.end()
        del live, standing


@dataclass
class Footprint:
    """What this process and all that it has started take, sampled over time."""

    mib: list[float] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def sample(self) -> None:
        """Take one now; the servers of cameras are not ours and come and go."""
        gc.collect()
        mine = psutil.Process()
        ours = [mine] + [
            one for one in mine.children(recursive=True) if "rtsp_server.py" not in _command(one)
        ]
        pss = files = 0
        for one in ours:
            with contextlib.suppress(psutil.Error):
                pss += one.memory_full_info().pss
                files += one.num_fds()
        self.mib.append(round(pss / 2**20, 1))
        self.threads.append(mine.num_threads())
        self.files.append(files)

    @property
    def growth_mib(self) -> float:
        """From the second quarter to the last, each by its median."""
        quarter = max(1, len(self.mib) // 4)
        return round(median(self.mib[-quarter:]) - median(self.mib[quarter : 2 * quarter]), 1)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def every(seconds: float, work: Callable[[], None], stop: threading.Event) -> threading.Thread:
    """Do something again and again in a thread, until told to stop."""

    def go() -> None:
        while not stop.wait(seconds):
            work()

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def soak(headstart: Headstart, plug: Plug, minutes: float) -> tuple[dict[str, Any], list[str]]:
    """Let it all go on for so long; returns the figures and the faults."""
    asked = {"headstart": headstart, "windows": WINDOWS, "max_tokens": MAX_TOKENS}
    # vLLM starts some of its threads with its first request.
    Abandoned(headstart, RoughCamera(3)).once()
    threads, processes = set(threading.enumerate()), children()
    cameras = [open_source(plug.address), open_source("drive:7")]
    on_rtsp, slowly = (
        Reader(watch(camera, QUESTION, **asked), pause_s)
        for camera, pause_s in zip(cameras, (0.0, SLOW_READER_S), strict=True)
    )
    unplugging = Unplugging(plug, on_rtsp)
    abandoned = Abandoned(headstart, RoughCamera(3))
    footprint, stop = Footprint(), threading.Event()
    working = [
        every(UNPLUG_EVERY_S, unplugging.once, stop),
        every(ABANDON_EVERY_S, abandoned.once, stop),
        every(SAMPLE_S, footprint.sample, stop),
    ]
    began_s = time.monotonic()
    for minute in count(1):
        time.sleep(max(0.0, began_s + 60 * min(minute, minutes) - time.monotonic()))
        print(
            f"minute {minute}: {len(on_rtsp.starts_us)} answers on RTSP,"
            f" {len(unplugging.back_s)} times back, {abandoned.number} sessions abandoned,"
            f" {footprint.mib[-1:]} MiB",
            file=sys.stderr,
            flush=True,
        )
        if minute >= minutes:
            break
    stop.set()
    for thread in working:
        thread.join()
    # The cameras end as any source does: what was asked about them is still answered.
    for camera, reader in zip(cameras, (on_rtsp, slowly), strict=True):
        camera.close()
        reader.end()
    faults = [*on_rtsp.faults(), *slowly.faults()]
    gc.collect()
    until = time.monotonic() + 30
    feeder = headstart.target.feeder
    while time.monotonic() < until and not in_loop(headstart, lambda: feeder.is_idle):
        time.sleep(0.1)
    is_released = forget_prefixes(headstart)
    plug.pull()  # its server is another process by now than at the beginning
    left = sorted(each.name for each in threading.enumerate() if each not in threads)
    more = len(children() - processes)
    if not is_released:
        faults.append("vLLM still held blocks of its cache")
    if left or more:
        faults.append(f"left behind: threads {left}, {more} processes")
    if footprint.growth_mib > MAX_GROWTH_MIB:
        faults.append(f"memory grew by {footprint.growth_mib} MiB")
    if unplugging.lost or not unplugging.back_s:
        faults.append(f"{unplugging.lost} times no answer after the camera was back")
    if not slowly.watched.counts["drive:7"].live.unread:
        faults.append("the slow reader was not slow enough to show anything")
    figures = {
        "minutes": minutes,
        "unplugged": len(unplugging.back_s) + unplugging.lost,
        "back_s_p50": round(median(unplugging.back_s), 1) if unplugging.back_s else None,
        "back_s_max": round(max(unplugging.back_s), 1) if unplugging.back_s else None,
        "abandoned": abandoned.number,
        "rtsp": on_rtsp.figures(),
        "slow_reader": slowly.figures(),
        "feeds": asdict(feeder.counts),
        "blocks_released": is_released,
        "growth_mib": footprint.growth_mib,
        "footprint": asdict(footprint),
        "left_behind": [*left, *["process"] * more],
        "faults": faults,
    }
    return figures, faults


def main() -> None:
    """Soak and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA")
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    if not HAS_SERVER:
        sys.exit("no RTSP server: make rtsp (as root)")
    with tempfile.TemporaryDirectory() as folder:
        film, camera = Path(folder) / "film.mkv", RoughCamera(5)
        encode(film, (camera.frame(n * 1_000_000 // FPS) for n in range(FILM_S * FPS)), fps=FPS)
        plug = Plug(film)
        try:
            with Headstart(options.target, vllm=ENGINE) as headstart:
                figures, faults = soak(headstart, plug, options.minutes)
        finally:
            plug.pull()
    print(json.dumps(figures))
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
