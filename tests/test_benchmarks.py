"""The benchmarks run on a small scale. How fast things are is theirs to say, on a quiet machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def last_line_of(name, *arguments):
    search = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-m", name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": search},
    )
    return json.loads(result.stdout.splitlines()[-1])


def test_what_is_asked_when_the_scene_changed_is_judged_against_the_truth():
    pytest.importorskip("headstart_lab")
    figures = last_line_of("benchmarks.when_changed", "--drives", 1, "--seconds", 12)
    assert figures["windows"] == 6
    rows = figures["key_elements"]
    assert rows["every second window"]["asked"] == 3
    for kind in ("event camera", "simulated"):
        asked = [row["asked"] for label, row in rows.items() if label.startswith(kind)]
        assert 6 >= asked[0] >= asked[-1] >= 1
        assert asked[0] > asked[-1]
    assert 0 < figures["note_ms_p50"] <= figures["note_ms_p99"]


def test_the_ranker_is_timed_and_compared_with_memory(tmp_path):
    pytest.importorskip("numba")
    log = tmp_path / "log.jsonl"
    row = {"question": "q", "target_tokens": [n % 7 for n in range(90)]}
    log.write_text("\n".join([json.dumps(row)] * 30))
    figures = last_line_of("headstart_research.ranker.benchmark", log, "--learn-from", 0.5)
    for name in ("memory", "ranker, frozen", "ranker, online"):
        assert figures[name]["tokens_per_pass"] > 1
        assert 0 < figures[name]["draft_ms_p50"] <= figures[name]["draft_ms_p99"]
    assert figures["ranker, online"]["lesson_ms_p50"] > 0


def test_a_bridges_drafts_are_timed_and_taken_apart(tmp_path):
    pytest.importorskip("numba")
    lab = pytest.importorskip("headstart_lab.pair")
    log = tmp_path / "log.jsonl"
    row = {"question": "q", "target_tokens": [300 + 7 * n for n in range(60)]}
    log.write_text("\n".join([json.dumps(row)] * 12))
    figures = last_line_of(
        "headstart_research.bridge.benchmark",
        log,
        "--bridge",
        lab.INSTALLED / "bridge",
        "--answers",
        6,
    )
    assert figures["tokens_per_pass"] > 1
    assert figures["drafts"] >= 6
    assert figures["readings_per_draft"] >= 1
    assert 1 <= figures["tokens_per_reading"] <= 60
    for part in ("context", "reading", "draft"):
        assert 0 < figures[f"{part}_ms_p50"] <= figures[f"{part}_ms_p95"]
        assert figures[f"{part}_cpu_ms_p50"] > 0
    assert figures["reading_ms_p50"] < figures["draft_ms_p95"]
