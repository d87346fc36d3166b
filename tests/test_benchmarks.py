"""The benchmarks run on a small scale. How fast things are is theirs to say, on a quiet machine."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def last_line_of(name, *arguments):
    search = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": search},
    )
    return json.loads(result.stdout.splitlines()[-1])


def test_a_window_out_of_a_long_recording_takes_little_memory(tmp_path):
    pytest.importorskip("hdf5plugin")
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from Linux's /proc")
    figures = last_line_of("window_read", "--file", tmp_path / "long.h5", "--num-events", 5_000_000)
    assert figures["num_events"] == 5_000_000
    assert figures["median_window_ms"] > 0
    assert figures["peak_mib"] + figures["peak_helper_mib"] < 300


def test_rendering_prints_its_figures():
    figures = last_line_of("rendering", "--num-events", 500_000, "--repeats", 1)
    assert figures["render_events_per_s"] > 0


def test_every_part_of_a_proposal_is_timed():
    answers = ("--num-answers", 1000, "--num-tenant-answers", 1500)
    figures = last_line_of("drafting", *answers, "--repeats", 300)
    memory = ("memory", "memory_worst", "warm_memory", "warm_memory_new_stream")
    for part in ("board", "board_resync", *memory, "cascade"):
        assert 0 < figures[f"{part}_us_p50"] <= figures[f"{part}_us_p99"]


def test_a_translated_drafter_is_timed_and_compared_with_one_of_the_same_tokens():
    pytest.importorskip("headstart_lab")
    pytest.importorskip("transformers")
    figures = last_line_of("retokenising", "--num-answers", 12, "--repeats", 50)
    assert 0 < figures["draft_us_p50"] <= figures["draft_us_p99"]
    assert figures["spelt_as_usual"] == figures["num_answers"] == 12
    for name, per_pass in figures["tokens_per_pass"].items():
        # A word that waits to be finished costs something, never more than the word.
        assert 1 < per_pass["translated"] <= per_pass["same"], name
    assert figures["tokens_per_pass"]["right, 32 ahead"]["translated"] > 16


def test_what_is_asked_when_the_scene_changed_is_judged_against_the_truth():
    pytest.importorskip("headstart_lab")
    figures = last_line_of("when_changed", "--drives", 1, "--seconds", 12)
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
    figures = last_line_of("ranker", log, "--learn-from", 0.5)
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
    figures = last_line_of("bridge", log, "--bridge", lab.INSTALLED / "bridge", "--answers", 6)
    assert figures["tokens_per_pass"] > 1
    assert figures["drafts"] >= 6
    assert figures["readings_per_draft"] >= 1
    assert 1 <= figures["tokens_per_reading"] <= 60
    for part in ("context", "reading", "draft"):
        assert 0 < figures[f"{part}_ms_p50"] <= figures[f"{part}_ms_p95"]
        assert figures[f"{part}_cpu_ms_p50"] > 0
    assert figures["reading_ms_p50"] < figures["draft_ms_p95"]


def test_the_parameters_of_an_event_model_are_those_of_its_weights(trained_pair):
    pytest.importorskip("vllm")
    from benchmarks.event_model import parameters
    from safetensors import safe_open

    from headstart.models.eventgpt.config import EventChatConfig

    with safe_open(trained_pair.drafter / "model.safetensors", "np") as file:
        sizes = {name: math.prod(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    seeing = sum(size for name, size in sizes.items() if "visual_" in name or "adaptor" in name)
    counted = parameters(EventChatConfig.from_pretrained(trained_pair.drafter))
    assert 0 < seeing < sum(sizes.values())
    assert counted["tower_and_projector"] == seeing
    assert counted["language_model"] == sum(sizes.values()) - seeing


def test_what_an_answer_waits_for_is_told_from_what_is_done_meanwhile():
    pytest.importorskip("headstart_lab")
    from benchmarks.engine_waits import DRAFT, LAY_OUT, MEANWHILE, TAKE, Call, parts

    fed = [Call(LAY_OUT, 0.000, 0.001), Call(MEANWHILE, 0.001, 0.002), Call(TAKE, 0.050, 0.051)]
    prompt = [
        Call(LAY_OUT, 0.100, 0.113),
        Call(DRAFT, 0.101, 0.112),
        Call(MEANWHILE, 0.114, 0.121),
        Call(TAKE, 0.213, 0.214),
    ]
    later = [Call(LAY_OUT, 0.220, 0.221), Call(MEANWHILE, 0.221, 0.2215), Call(TAKE, 0.240, 0.242)]
    spent = {
        part: [round(ms, 6) for ms in all_ms]
        for part, all_ms in parts([*fed, *prompt, *later]).items()
    }
    assert spent == {
        "prompt: laid out": [13.0],
        "prompt: of it drafting": [11.0],
        "prompt: computed": [100.0],
        "prompt: meanwhile": [7.0],
        "prompt: taken in": [1.0],
        "later: laid out": [1.0],
        "later: of it drafting": [0.0],
        "later: computed": [19.0],
        "later: meanwhile": [0.5],
        "later: taken in": [2.0],
    }


def test_pacing_prompts_costs_nobody_a_first_word_worth_speaking_of():
    """On a simulated clock, so that the figures are the same on any machine."""
    pytest.importorskip("vllm")
    from benchmarks.prompt_pace import constant, measured

    def p95(kind, ours, drafted):
        return measured(ours, drafted, seeds=2)[f"{kind}, p95"]

    first, short = "first word, undrafted", "short answer, undrafted"
    assert p95(first, True, 0.0) <= 1.02 * p95(first, False, 0.0)
    paced, bare = measured(True, 0.5, seeds=2), measured(False, 0.5, seeds=2)
    assert paced[f"{first}, p95"] <= 1.25 * bare[f"{first}, p95"]
    with constant("HELD", 0.0):
        assert paced[f"{short}, p95"] < 0.7 * p95(short, True, 0.5)
