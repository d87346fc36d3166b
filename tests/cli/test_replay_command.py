import json

from typer.testing import CliRunner

from headstart.cli import app
from headstart_research.bridge.config import BridgeConfig
from tests.bridge.random_bridge import NEVER_SURE, save_random_bridge

FIGURES = {"tokens_per_pass", "first_block", "passes_p50", "passes_p95", "by_age"}


def run(tmp_path, rows, *options):
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return CliRunner().invoke(app, ["replay", str(file), *options])


def test_the_last_line_is_the_figures_of_every_method(tmp_path):
    rows = [
        {"clip": i, "question": "q", "target_tokens": [1, 2, 3, 4], "draft_tokens": [1, 9]}
        for i in range(4)
    ]
    result = run(tmp_path, rows)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.splitlines()[-1])
    assert set(figures) == {
        "drafter raw",
        "previous answer",
        "5-gram back-off",
        "recent suffix",
        "ngram",
        "memory",
        "memory + drafter's words",
        "oracle over the past",
    }
    assert all(set(values) == FIGURES for values in figures.values())
    assert figures["memory"]["first_block"] == 3.0


def test_blind_methods_are_there_without_drafts(tmp_path):
    rows = [{"clip": 0, "question": "q", "target_text": "A car on a road."}]
    result = run(tmp_path, rows, "--set=max_draft=8", "--set=max_first_draft=8")
    figures = json.loads(result.stdout.splitlines()[-1])
    assert {"previous answer", "5-gram back-off"} <= set(figures)
    assert "drafter raw" not in figures


def test_a_cut_log_is_replayed_with_own_and_with_warm_memory(tmp_path):
    rows = [{"question": "q", "target_tokens": [1, 2, 3, 4]}] * 12
    result = run(tmp_path, rows, "--set=cut=3")
    assert result.exit_code == 0, result.output
    assert "12 answers of 4 streams" in result.stdout
    assert "tokens/pass by age" in result.stdout
    figures = json.loads(result.stdout.splitlines()[-1])
    own, warm = figures["memory, own stream only"], figures["memory"]
    assert own["by_age"] == {"1": 1.0, "2": 4.0, "3-5": 4.0}
    assert warm["by_age"] == {"1": 2.286, "2": 4.0, "3-5": 4.0}


def test_streams_are_taken_from_a_field_of_the_log(tmp_path):
    rows = [
        {"question": "q", "target_tokens": [1, 2, 3, 4], "camera": camera}
        for camera in ("front", "back", "front", "back")
    ]
    result = run(tmp_path, rows, "--set=stream_field=camera")
    assert "4 answers of 2 streams" in result.stdout
    assert "memory, own stream only" in json.loads(result.stdout.splitlines()[-1])
    assert "memory, own stream only" not in run(tmp_path, rows).stdout


def test_a_broken_log_is_an_error_without_a_traceback(tmp_path):
    result = run(tmp_path, [[1]])
    assert result.exit_code == 1
    assert "error: " in result.output
    assert "line 1" in result.output


def test_what_comes_after_the_share_to_learn_from_counts_for_every_method_alike(tmp_path):
    rows = [{"question": "q", "target_tokens": [n, n + 1, n + 2]} for n in (1, 5, 9, 9)]
    result = run(tmp_path, rows, "--learn-from", "0.75")
    assert "1 answers after the first 3" in result.stdout
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures["memory"]["tokens_per_pass"] == 3.0
    assert json.loads(run(tmp_path, rows).stdout.splitlines()[-1])["memory"]["tokens_per_pass"] < 2


def test_a_drafter_that_is_off_by_default_is_replayed_if_it_is_named(tmp_path):
    rows = [{"question": "q", "target_tokens": [1, 2, 3, 4]}] * 3
    figures = json.loads(run(tmp_path, rows, "--also", "wrong").stdout.splitlines()[-1])
    assert figures["wrong"]["tokens_per_pass"] == 1.0
    result = run(tmp_path, rows, "--also", "nobody")
    assert result.exit_code == 1
    assert "there is no drafter" in result.output


def test_a_bridge_is_replayed_beside_the_others(tmp_path):
    (tmp_path / "config.json").write_text('{"text_config": {"vocab_size": 9}}')  # a target's
    config = BridgeConfig(8, width=8, num_heads=2, hidden=8)
    bridge = save_random_bridge(tmp_path / "bridge", tmp_path, config, calibration=NEVER_SURE)
    rows = [{"question": "q", "target_tokens": [1, 2, 3, 4]}] * 4
    options = "--learn-from", "0.5", "--also", f"bridge={bridge}"
    result = run(tmp_path, rows, *options)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.splitlines()[-1])
    # It is never sure of a word of its own, so it says what its memory has learnt here, and goes
    # on unless it thinks the same: then it takes its doubt for memory's, and stops.
    assert 1.0 <= figures["bridge"]["first_block"] <= figures["memory"]["first_block"] == 4.0
    (bridge / "model.safetensors").unlink()
    broken = run(tmp_path, rows, *options)
    assert broken.exit_code == 1
    assert "headstart train bridge" in broken.output
