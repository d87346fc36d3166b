"""What `--when changed` asks, misses and saves on drives with stops and starts. JSON last.

    python -m benchmarks.when_changed
    python -m benchmarks.when_changed --traffic 0.2

The drives are the lab's, with longer stops, and all or some of their road users. Every two seconds
a window ends. What is true at its end are the facts of the reference answer to a question; the
scene has changed where they are not those of the window before. A change is missed if no window is
asked from then on to the next change. An answer is out of date at a window's end if its facts are
no longer true.

Events come from the lab's event camera, and from frames by simulation, as for a camera that has
none; frames are halved for that, which takes a quarter of the time and evens out their grain. The
threshold was chosen on training drives (`--split train`); held-out ones are shown.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.live.when import THRESHOLD, WhenChanged
from headstart.media.events import Events, SensorSize
from headstart_events.simulation import SensorModel, Simulator
from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import TARGET_STYLE
from headstart_lab.split import Split
from headstart_lab.world.air import Eye
from headstart_lab.world.drive import Drive
from headstart_lab.world.kinds import Pace
from headstart_lab.world.painter import render
from headstart_lab.world.scene import Scene
from headstart_lab.world.stage import Stage
from headstart_lab.world.writing import write_stage

DAVIS = SensorSize(346, 260)
HOLD_S = (15.0, 45.0)
FRAME_US = 100_000
WINDOW_US = 2_000_000
THRESHOLDS = (0.02, THRESHOLD, 0.1, 0.2, 0.5, 1.0)
EVENT_CAMERA = SensorModel(leak_rate_hz=0.03, shot_noise_rate_hz=0.2)
QUESTIONS = (Question.KEY_ELEMENTS, Question.SAFE)


@dataclass(frozen=True, slots=True)
class Window:
    """What is true at its end, by question, and whether the car stands then."""

    facts: tuple[frozenset[Fact], ...]
    stands: bool


@dataclass(slots=True)
class Asking:
    """One way to decide, followed through all drives: of each, which windows it asked."""

    asked: list[list[bool]] = field(default_factory=list)
    known_by_half: list[bool] = field(default_factory=list)
    """Of the windows asked, whether that was known when half of their frames had come."""


def main() -> None:
    """Follow the drives, print a table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=[s.name.lower() for s in Split], default="held_out")
    parser.add_argument("--drives", type=int, default=6)
    parser.add_argument("--skip", type=int, default=6, help="drives of the split left out")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--traffic", type=float, default=1.0, help="the share of road users kept")
    options = parser.parse_args()
    drives: list[list[Window]] = []
    ways = {name: {each: Asking() for each in THRESHOLDS} for name in ("event camera", "simulated")}
    for seed in Split[options.split.upper()].seeds(options.drives, options.skip):
        drive = Drive(seed, write=partial(write_waiting_stage, traffic=options.traffic))
        drives.append(followed(drive, options.seconds, ways))
    figures: dict[str, Any] = {
        "split": options.split,
        "drives": options.drives,
        "skip": options.skip,
        "seconds": options.seconds,
        "traffic": options.traffic,
        "windows": sum(map(len, drives)),
        "standing": round(fmean(w.stands for drive in drives for w in drive), 4),
        "default_threshold": THRESHOLD,
        **note_ms(),
    }
    for number, question in enumerate(QUESTIONS):
        facts = [[window.facts[number] for window in drive] for drive in drives]
        stands = [[window.stands for window in drive] for drive in drives]
        every_second = [[index % 2 == 0 for index in range(len(drive))] for drive in drives]
        rows = {"every second window": judged(every_second, facts, stands)}
        for name, by_threshold in ways.items():
            for threshold, way in by_threshold.items():
                row = judged(way.asked, facts, stands)
                row["known_by_half"] = round(fmean(way.known_by_half), 4)
                rows[f"{name}, {threshold:g}"] = row
        figures[question.name.lower()] = rows
        print(question.usual)
        for label, row in rows.items():
            print(
                f"  {label:22} asked {row['asked']:4}  changes {row['changes']:4}"
                f"  missed {row['missed']:3} ({row['missed_share']:.1%})"
                f"  delay {row['delay_s']:.2f} s  out of date {row['out_of_date']:.1%}"
                f"  saved {row['saved']:.1%}, standing {row['saved_standing']:.1%}"
            )
    print(json.dumps(figures))


def note_ms(sensor: SensorSize = DAVIS, num_events: int = 100_000) -> dict[str, float]:
    """What deciding costs a frame, with the events of a camera that turns."""
    rng = np.random.default_rng(0)
    events = Events.checked(
        rng.integers(0, sensor.width, num_events),
        rng.integers(0, sensor.height, num_events),
        np.sort(rng.integers(0, FRAME_US, num_events)),
        rng.integers(0, 2, num_events),
        sensor,
    )
    when, spent_ms = WhenChanged(), []
    for number in range(1, 201):
        started = time.perf_counter()
        when.note(number * FRAME_US, events)
        when.is_wanted(0, number * FRAME_US)
        spent_ms.append((time.perf_counter() - started) * 1e3)
    spent_ms.sort()
    return {"note_ms_p50": round(spent_ms[100], 3), "note_ms_p99": round(spent_ms[198], 3)}


def write_waiting_stage(
    seed: int, number: int, previous: Stage | None, traffic: float = 1.0
) -> Stage:
    """A stage with long stops, and a share of its road users."""
    stage = write_stage(seed, number, previous, HOLD_S)
    random = Random(f"{seed}/{number}/traffic")
    kept = tuple(actor for actor in stage.actors if random.random() < traffic)
    return replace(stage, actors=kept)


def followed(drive: Drive, seconds: int, ways: dict[str, dict[float, Asking]]) -> list[Window]:
    """The windows of one drive, while every way decides about each of them."""
    deciding = {
        (name, threshold): WhenChanged(threshold=threshold)
        for name, by_threshold in ways.items()
        for threshold in by_threshold
    }
    for by_threshold in ways.values():
        for way in by_threshold.values():
            way.asked.append([])
    windows: list[Window] = []
    half: dict[tuple[str, float], bool] = {}
    for scene, by_camera in arrivals(drive, seconds):
        for (name, _), when in deciding.items():
            when.note(scene.time_us, by_camera[name])
        start_us = len(windows) * WINDOW_US
        stop_us = start_us + WINDOW_US
        if scene.time_us == start_us + WINDOW_US // 2:
            half = {key: when.is_wanted(start_us, stop_us) for key, when in deciding.items()}
        if scene.time_us == stop_us - FRAME_US:
            windows.append(window_at(scene))
            for key, when in deciding.items():
                way, is_asked = ways[key[0]][key[1]], when.is_wanted(start_us, stop_us)
                way.asked[-1].append(is_asked)
                if is_asked:
                    way.known_by_half.append(half[key])
                    when.asked(start_us, stop_us)
    return windows


def arrivals(drive: Drive, seconds: int) -> Iterator[tuple[Scene, dict[str, Events]]]:
    """The scene at each frame, and the events since the frame before."""
    event_camera = Simulator(drive.size, EVENT_CAMERA)
    simulator = Simulator(SensorSize(drive.size.width // 2, drive.size.height // 2))
    for time_us in range(0, seconds * 1_000_000, FRAME_US):
        scene = drive.scene(time_us)
        yield (
            scene,
            {
                "event camera": event_camera.see(time_us, render(scene, Eye.EVENTS)),
                "simulated": simulator.see(time_us, halved(render(scene))),
            },
        )


def halved(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The frame at half its width and height: each pixel is the mean of four."""
    height, width, _ = frame.shape
    fours = frame.reshape(height // 2, 2, width // 2, 2, 3)
    return fours.mean(axis=(1, 3)).astype(np.uint8)


def window_at(scene: Scene) -> Window:
    """What is true at the last frame."""
    facts = tuple(frozenset(TARGET_STYLE.answer(scene, each).facts) for each in QUESTIONS)
    return Window(facts, scene.pace is Pace.STANDING)


def judged(
    asked: Sequence[Sequence[bool]],
    facts: Sequence[Sequence[frozenset[Fact]]],
    stands: Sequence[Sequence[bool]],
) -> dict[str, Any]:
    """What one way of asking cost and missed, over all drives."""
    num_changes = num_missed = num_stale = 0
    delays_s: list[float] = []
    for of_drive, true in zip(asked, facts, strict=True):
        changes = [at for at, (before, now) in enumerate(pairwise(true), 1) if before != now]
        num_changes += len(changes)
        for at, following in pairwise([*changes, len(true)]):
            noticed = [index for index in range(at, following) if of_drive[index]]
            delays_s += [(index - at) * WINDOW_US / 1e6 for index in noticed[:1]]
            num_missed += not noticed
        said = None
        for index, is_asked in enumerate(of_drive):
            said = true[index] if is_asked else said
            num_stale += said != true[index]
    every = [is_asked for of_drive in asked for is_asked in of_drive]
    stood = [stands_now for of_drive in stands for stands_now in of_drive]
    standing = [is_asked for is_asked, stands_now in zip(every, stood, strict=True) if stands_now]
    return {
        "asked": sum(every),
        "windows": len(every),
        "changes": num_changes,
        "missed": num_missed,
        "missed_share": round(num_missed / max(1, num_changes), 4),
        "delay_s": round(fmean(delays_s or [0.0]), 3),
        "out_of_date": round(num_stale / len(every), 4),
        "saved": round(1 - fmean(every), 4),
        "saved_standing": round(1 - fmean(standing), 4) if standing else 0.0,
    }


if __name__ == "__main__":
    main()
