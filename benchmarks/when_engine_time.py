"""How much of the engine's time `--when changed` saves, on drives with stops and starts. JSON last.

    python -m benchmarks.when_engine_time lab/headstart_lab/pair/target

Each drive is seen twice by one engine, asked about every window and only when the scene changed. An
arrival is worked off before the next one lands. What counts is the engine's processor time, which
hardly depends on what else the machine does.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")

import psutil
from benchmarks.measurement import StderrProgress
from benchmarks.when_changed import FRAME_US, WINDOW_US, arrivals, write_waiting_stage
from headstart_lab.language.questions import Question
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive
from headstart_lab.world.painter import render
from tests.live.camera import in_loop

from headstart import Headstart, LiveSession, WhenChanged, Windows
from headstart.live.when import Always, When

ENGINE = {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 2**28}
LOOK_S = 0.002


@dataclass
class Camera:
    """One way to decide, and the processor time that the engine spent on it."""

    when: type[When]
    engine_s: float = 0.0
    windows: int = 0
    asked: int = 0


def main() -> None:
    """Feed both cameras and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA")
    parser.add_argument("--drives", type=int, default=3)
    parser.add_argument("--skip", type=int, default=6, help="held-out drives left out")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--traffic", type=float, default=1.0, help="the share of road users kept")
    options = parser.parse_args()
    cameras = {"every window": Camera(Always), "when changed": Camera(WhenChanged)}
    with Headstart(options.target, vllm=ENGINE) as headstart:
        for seed in Split.HELD_OUT.seeds(options.drives, options.skip):
            drive = Drive(seed, write=partial(write_waiting_stage, traffic=options.traffic))
            for camera in cameras.values():
                follow(headstart, drive, options.seconds, camera)
    every, changed = cameras.values()
    figures = {
        "drives": options.drives,
        "skip": options.skip,
        "seconds": options.seconds,
        "traffic": options.traffic,
        "cameras": {
            name: {
                "windows": camera.windows,
                "asked": camera.asked,
                "engine_s": round(camera.engine_s, 2),
            }
            for name, camera in cameras.items()
        },
        "questions_saved": round(1 - changed.asked / every.asked, 4),
        "engine_time_saved": round(1 - changed.engine_s / every.engine_s, 4),
    }
    print(json.dumps(figures))


def follow(headstart: Headstart, drive: Drive, seconds: int, camera: Camera) -> None:
    """One drive, seen by one camera."""
    # The process that computes. Its parent waits for it in a loop, which costs time as well.
    (engine,) = (
        child
        for child in psutil.Process().children(recursive=True)
        if "VLLM::Worker" in "".join(child.cmdline())
    )
    session = headstart.session(f"drive {drive.seed}", camera.when.__name__)
    live = LiveSession(session, Windows(WINDOW_US / 1e6), when=camera.when())
    standing = live.standing(Question.KEY_ELEMENTS.usual, max_tokens=64)
    feeder, progress, num_read = headstart.target.feeder, StderrProgress(), 0
    num_frames = seconds * 1_000_000 // FRAME_US
    for number, (scene, by_camera) in enumerate(arrivals(drive, seconds), 1):
        frame, before_s = render(scene), processor_s(engine)
        live.feed(frame, scene.time_us, by_camera["event camera"])
        while not in_loop(headstart, lambda: feeder.is_idle):
            time.sleep(LOOK_S)
        while num_read < live.counts.asked:
            next(standing)
            num_read += 1
        camera.engine_s += processor_s(engine) - before_s
        progress("frames", number, num_frames)
    camera.windows += live.counts.windows
    camera.asked += live.counts.asked
    live.close()


def processor_s(process: psutil.Process) -> float:
    """What a process has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
