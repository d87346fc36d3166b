"""Live workloads: frames that arrive one by one, and as many cameras as an engine holds."""

import json

import pytest

from headstart import Clip, Headstart, Video
from headstart_lab.workloads import FRAME_S
from headstart_research.bench.cameras import (
    WARMUP_WINDOWS,
    CameraLoad,
    CamerasHeld,
    Level,
    Outcome,
    Phase,
)
from headstart_research.bench.methods import Method
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.workloads import Workload, lab_workloads, rotating
from headstart_research.planning.cameras import most_held
from tests.bench.played import played_result
from tests.bench.test_workload_json import Borrowed
from tests.models.oracle import random_asked

QUESTION = "What has just been seen?"
MAX_TOKENS = 12


@pytest.fixture
def clips(rng) -> list[Clip]:
    return [Clip(video=Video.from_frames(asked.frames, fps=8)) for asked in random_asked(rng, 4)]


def workload(clips: list[Clip], frame_s: float) -> Workload:
    name = "live" if frame_s else "whole"
    return Workload(name, name, lambda *_: rotating(clips, [QUESTION]), MAX_TOKENS, frame_s=frame_s)


def test_the_labs_live_camera_shows_a_second_as_it_passes():
    live = {work.name: work.frame_s for work in lab_workloads(4, 96) if work.is_live}
    assert live == {"live": FRAME_S}


@pytest.mark.engine
def test_frames_are_fed_to_live_methods_and_the_words_stay_the_same(headstart: Headstart, clips):
    methods = [
        Method(BARE, "alone"),
        Method("memory", "with drafts"),
        Method("live", "and frames as they arrive", is_fed=True),
    ]
    run = Run(
        lambda _: Borrowed(headstart),  # type: ignore[arg-type, return-value]
        methods,
        [workload(clips, 0.05), workload(clips, 0.0)],
        BenchPlan(rounds=1, warmup=1),
    )
    num_fed = headstart.target.feeder.counts.frames
    run.run()
    played = {(sample.workload, sample.method) for sample in run.samples}
    assert ("whole", "live") not in played
    assert {("live", "live"), ("live", "memory"), ("whole", "memory")} < played
    by_method: dict[str, list] = {}
    for sample in run.samples:
        if sample.workload == "live":
            by_method.setdefault(sample.method, []).append(sample)
    words = {name: {(s.index, s.words) for s in samples} for name, samples in by_method.items()}
    assert words["live"] == words["memory"] == words[BARE]
    assert len(words["live"]) == len(clips)
    assert headstart.target.feeder.counts.frames > num_fed


@pytest.mark.engine
def test_every_window_of_every_camera_is_accounted_for(headstart: Headstart, clips):
    load = CameraLoad(headstart, workload(clips, 0.05), step_s=0.6, windows=1, prefill=True)
    outcomes = load.play([Phase(2, 3), Phase(1, 2)])
    assert sorted((one.phase, one.window) for one in outcomes) == [
        *[(0, window) for window in range(3) for _ in range(2)],
        *[(1, window) for window in range(2)],
    ]
    answered = [one.wait_s for one in outcomes if one.wait_s is not None]
    assert answered
    assert min(answered) > 0


def outcomes(*waits: float | None, phase: int = 0) -> list[Outcome]:
    return [Outcome(phase, window, wait_s) for window, wait_s in enumerate(waits)]


def test_a_dropped_or_a_late_window_means_not_held():
    warmup = (None,) * WARMUP_WINDOWS
    assert Level.of(3, outcomes(*warmup, 0.5, 0.5, 0.9)).is_held(1.0)
    dropped = Level.of(3, outcomes(*warmup, 0.5, None, 0.9))
    assert (dropped.answered, dropped.dropped) == (2, 1)
    assert not dropped.is_held(1.0)
    assert not Level.of(3, outcomes(*warmup, 0.5, 0.5, 1.9)).is_held(1.0)
    assert not Level.of(3, outcomes(*warmup)).is_held(1.0)


@pytest.mark.parametrize("held", [*range(14), 20])
def test_the_largest_number_that_is_held_is_found(held):
    tried: list[int] = []

    def is_held(count: int) -> bool:
        tried.append(count)
        return count <= held

    assert most_held(is_held, 13) == min(held, 13)
    assert len(tried) == len(set(tried)) <= 8
    assert max(tried) <= 13


def test_recovery_is_the_first_window_after_which_none_is_late(headstart_without_engine):
    load = headstart_without_engine
    assert load._recovery(outcomes(None, 3.0, 0.5, 0.5)) == 2
    assert load._recovery(outcomes(0.5, 0.5)) == 0
    assert load._recovery(outcomes(*(None,) * load._windows)) is None


@pytest.fixture
def headstart_without_engine() -> CameraLoad:
    class Target:
        class view:  # noqa: N801
            num_frames = 8

    class Engine:
        target = Target

    return CameraLoad(Engine, workload([], 0.1), step_s=1.0, windows=4, prefill=False)  # type: ignore[arg-type]


def test_the_summary_of_a_live_workload_says_what_is_asked_of_it(tmp_path):
    result = played_result(workloads=("live", "fixed"))
    level = Level(2, 9, 0, 0.3, 0.4)
    held = [CamerasHeld(count, 2.0, (level,), level, 1).as_json() for count in (1, 3)]
    result = BenchResult(
        **{
            **{name: getattr(result, name) for name in result.__dataclass_fields__},
            "live": ("live",),
            "cameras": {BARE: held[0], "memory": held[1]},
        }
    )
    result.write(tmp_path / "bench.json")
    assert BenchResult.read(tmp_path / "bench.json") == result
    rows = json.loads((tmp_path / "bench.json").read_text())["summary"]
    row = rows["live"]["memory"]
    assert row["last_word"] == row["end_to_end"]
    assert row["last_word_p95"] == row["end_to_end_p95"]
    assert (row["cameras_held"], row["cameras_held_bare"]) == (3, 1)
    assert "last_word" not in rows["fixed"]["memory"]
