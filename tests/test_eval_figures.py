"""The tables of docs/learned-drafters.md, made from a run that is kept."""

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from tests.evaluation.made_up import answers_of
from tests.evaluation.test_evaluation import evaluate
from tests.figures import keep, tables_of

QUESTIONS = ("What?", "Who?")
SAID = answers_of(1)


def test_tables_show_the_kept_run(tmp_path):
    known = {"elsewhere": [dict.fromkeys(QUESTIONS, SAID)]}
    run = evaluate(tmp_path, known).as_json()
    keep(tmp_path, "eval_lab-pair", run)
    drafters, differences = tables_of(tmp_path, "eval-drafters", "eval-differences")
    header, _, memory, warm = drafters
    assert header.startswith("| drafter | one question: tokens/pass | in turn: tokens/pass |")
    assert memory.startswith("| memory | 3.20 (3.20 to 3.20) | ")
    assert warm.startswith("| warm-memory | 12.00 (12.00 to 12.00) | 12.00 (12.00 to 12.00) |")
    assert "| none, none |" in warm  # no scene was new
    (row,) = differences[2:]
    assert row.startswith("| warm-memory over memory | +8.80 (")
    assert len(row.split("|")) == len(differences[0].split("|"))


def test_the_table_of_seeds_has_means_and_the_intervals_of_differences(tmp_path):
    difference = {"mean": 1.5, "lowest": 1.0, "highest": 2.0, "streams_low": -0.25}
    rows = {
        "target": {"mean": 12.0, "lowest": 11.0, "highest": 13.0},
        "bridge-target over bridge-none": {**difference, "streams_high": 3.0},
    }
    run = {"bridges": {"one-question": rows, "in-turn": rows}}
    keep(tmp_path, "eval_lab-pair_three-seeds", run)
    ((_, _, target, over),) = tables_of(tmp_path, "eval-seeds")
    assert target == "| target | 12.00 (11.00 to 13.00) |  | 12.00 (11.00 to 13.00) |  |"
    assert over.startswith(
        "| bridge-target over bridge-none | +1.50 (+1.00 to +2.00) | -0.25 to +3.00 |"
    )
