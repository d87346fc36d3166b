"""`headstart eval`: tables, a file, a picture, one line of JSON, and what it refuses."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.cli import app
from headstart_research.evaluation import contenders
from tests.evaluation.made_up import TARGET, Seer, answers_of, bridge_directory, write_records

QUESTIONS = ("What?", "Who?")
STREAMS = {
    name: [{q: answers_of([place, len(q)]) for q in QUESTIONS} for place in range(4)]
    for name in ("a", "b")
}


@pytest.fixture
def records(tmp_path):
    return write_records(tmp_path / "records", STREAMS)


def run(*words):
    return CliRunner().invoke(app, ["eval", *map(str, words)])


def test_the_last_line_is_the_result_and_so_is_the_file(tmp_path, records, monkeypatch):
    monkeypatch.setattr(contenders, "load_bridge", lambda directory, memory: Seer(STREAMS))
    known = write_records(tmp_path / "known", STREAMS, source="lab", name="other ")
    bridge = bridge_directory(tmp_path / "bridge")
    out, picture = tmp_path / "eval.json", tmp_path / "eval.svg"
    files = ["--out", out, "--picture", picture]
    done = run(records, "--learn-from", known, "--also", f"bridge={bridge}", *files)
    assert done.exit_code == 0, (done.output, done.exception)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last == json.loads(out.read_text())
    assert last["environment"]["machine"]
    for workload in ("one-question", "in-turn"):
        rows = last["summary"][workload]
        assert list(rows) == [
            "memory",
            "warm-memory",
            *(f"bridge-{n}" for n in contenders.SELECTIONS),
        ]
        assert rows["bridge-target"]["tokens_per_pass"] == 12
        assert rows["memory"]["tokens_per_pass"] == 1
    assert picture.read_text().startswith("<svg ")
    assert "one-question: one question about every clip; 8 answers of 2 streams" in done.stdout
    assert "bridge-target over bridge-none" in done.stdout
    assert "+11.00" in done.stdout


def test_of_several_bridges_the_mean_is_printed_with_the_lowest_and_the_highest(
    tmp_path, records, monkeypatch
):
    monkeypatch.setattr(contenders, "load_bridge", lambda directory, memory: Seer(STREAMS))
    words = [
        word
        for n in (1, 2)
        for word in ("--also", f"bridge={bridge_directory(tmp_path / f'seed-{n}')}")
    ]
    done = run(records, *words)
    assert done.exit_code == 0, (done.output, done.exception)
    rows = {row.partition("  ")[0]: row.split() for row in done.stdout.splitlines()}
    assert rows["target"][1:] == ["12.00", "12.00", "12.00"]
    over = rows["bridge-target over bridge-none"]
    assert over[3:] == ["+11.00", "+11.00", "+11.00", "11.00..11.00"]


def test_without_other_records_and_bridges_memory_is_measured(records):
    done = run(records)
    assert done.exit_code == 0, (done.output, done.exception)
    last = json.loads(done.stdout.splitlines()[-1])
    assert list(last["summary"]["in-turn"]) == ["memory"]


def test_what_cannot_be_measured_is_an_error_without_a_traceback(tmp_path, records):
    done = run(records, "--learn-from", records)
    assert done.exit_code == 1
    assert "which are for measuring" in " ".join(done.output.split())
    (tmp_path / "empty").mkdir()
    done = run(tmp_path / "empty")
    assert done.exit_code == 1
    assert "a folder that headstart collect filled" in " ".join(done.output.split())


def test_a_bridge_of_another_target_is_refused_before_anything_is_replayed(tmp_path, records):
    another = replace(TARGET, name="another-model", digest="other weights")
    done = run(records, "--also", f"bridge={bridge_directory(tmp_path / 'bridge', another)}")
    assert done.exit_code == 1
    told = " ".join(done.output.split())
    assert "another target (another-model) than the records are of (target)" in told
    assert "headstart train bridge" in told
    assert "memory" not in told
