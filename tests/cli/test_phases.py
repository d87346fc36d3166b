"""What of a start is shown: read from vLLM's log, timed by a clock that the test turns."""

import importlib.util
from pathlib import Path

import pytest

from headstart.cli.starting import BEGINNINGS, Phases


def test_each_phase_takes_the_seconds_until_the_next_begins():
    phases = Phases(100.0)
    for second, line in (
        (112.0, "INFO [model.py:7] Resolved architecture: VideoLlava"),
        (113.0, "INFO nothing of note"),
        (115.0, "(EngineCore pid=7) INFO Starting to load model /tmp/target..."),
        (118.5, "Loading weights took 3.41 seconds"),
        (120.0, "GPU KV cache size: 4,096 tokens, 4.1 GiB"),
        (127.0, "init engine (profile, create kv cache, warmup model) took 8.5 s"),
    ):
        phases.hear(line, second)
    assert phases.current == "opening"
    assert phases.summary(127.5) == (
        "28 s (reading vLLM 12 s, starting the engine 3 s, loading the model 4 s,"
        " measuring memory 2 s, warming up 7 s)"
    )


def test_a_start_of_one_phase_is_a_number():
    assert Phases(0.0).summary(3.2) == "3 s"


@pytest.mark.engine
@pytest.mark.parametrize("part", [part for part, _ in BEGINNINGS])
def test_vllm_says_what_the_phases_are_read_from(part):
    spec = importlib.util.find_spec("vllm")
    folder = Path(spec.submodule_search_locations[0])
    files = (*folder.glob("config/*.py"), *folder.glob("v1/**/*.py"))
    loaders = folder.glob("model_executor/model_loader/*.py")
    assert any(part in path.read_text() for path in (*files, *loaders))
