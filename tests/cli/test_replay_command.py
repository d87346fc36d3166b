import json

from typer.testing import CliRunner

from headstart.cli import app

FIGURES = {"tokens_per_pass", "first_block", "passes_p50", "passes_p95"}


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
    result = run(tmp_path, rows, "--max-draft", "8", "--max-first-draft", "8")
    figures = json.loads(result.stdout.splitlines()[-1])
    assert {"previous answer", "5-gram back-off"} <= set(figures)
    assert "drafter raw" not in figures


def test_a_broken_log_is_an_error_without_a_traceback(tmp_path):
    result = run(tmp_path, [[1]])
    assert result.exit_code == 1
    assert "error: " in result.output
    assert "line 1" in result.output
