"""The tables of docs/learned-drafters.md, made from a run that is kept."""

import json

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from benchmarks.figures import evaluation, results

from tests.evaluation.made_up import answers_of
from tests.evaluation.test_evaluation import evaluate

QUESTIONS = ("What?", "Who?")
SAID = answers_of(1)


def test_tables_show_the_kept_run(tmp_path, monkeypatch):
    known = {"elsewhere": [dict.fromkeys(QUESTIONS, SAID)]}
    run = evaluate(tmp_path, known).as_json()
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    results.result.cache_clear()
    drafters, differences = (evaluation.TABLES[f"eval-{n}"] for n in ("drafters", "differences"))
    (tmp_path / f"{evaluation.RUN}_cpu-2-cores_2026-01-01.json").write_text(json.dumps(run))
    header, _, memory, warm = drafters().splitlines()
    assert header.startswith("| drafter | one question: tokens/pass | in turn: tokens/pass |")
    assert memory.startswith("| memory | 3.20 (3.20 to 3.20) | ")
    assert warm.startswith("| warm-memory | 12.00 (12.00 to 12.00) | 12.00 (12.00 to 12.00) |")
    assert "| none, none |" in warm  # no scene was new
    (row,) = differences().splitlines()[2:]
    assert row.startswith("| warm-memory over memory | +8.80 (")
    assert len(row.split("|")) == len(differences().splitlines()[0].split("|"))
    results.result.cache_clear()


def test_the_table_of_seeds_has_means_and_the_intervals_of_differences(tmp_path, monkeypatch):
    difference = {"mean": 1.5, "lowest": 1.0, "highest": 2.0, "streams_low": -0.25}
    rows = {
        "target": {"mean": 12.0, "lowest": 11.0, "highest": 13.0},
        "bridge-target over bridge-none": {**difference, "streams_high": 3.0},
    }
    run = {"bridges": {"one-question": rows, "in-turn": rows}}
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    results.result.cache_clear()
    file = tmp_path / f"{evaluation.SEEDS}_cpu-2-cores_2026-01-01.json"
    file.write_text(json.dumps(run))
    _, _, target, over = evaluation.TABLES["eval-seeds"]().splitlines()
    assert target == "| target | 12.00 (11.00 to 13.00) |  | 12.00 (11.00 to 13.00) |  |"
    assert over.startswith(
        "| bridge-target over bridge-none | +1.50 (+1.00 to +2.00) | -0.25 to +3.00 |"
    )
    results.result.cache_clear()
