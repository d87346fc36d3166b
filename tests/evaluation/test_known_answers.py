"""What drafters may know beforehand, and that streams cannot tell each other anything."""

from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import CollectError, EvaluationError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.evaluation.asked_clips import AskedStreams
from headstart_research.evaluation.known_answers import KnownAnswers
from headstart_research.evaluation.workload import TENANT
from tests.evaluation.made_up import TARGET, answers_of, write_records

KNOWN, NEW = answers_of(1), answers_of(2)


@pytest.fixture
def held_out(tmp_path):
    return AskedStreams.read(write_records(tmp_path / "held-out", {"a": [{"What?": NEW}]}))


def read(folder, held_out, name="other ", **options):
    write_records(folder, {"a": [{"What?": KNOWN}]}, name=name, **{"source": "lab", **options})
    return KnownAnswers.read(folder, held_out)


def first_draft(memory, stream):
    memory.begin(DraftRequest("r", StreamKey(TENANT, stream), "What?"))
    return tuple(memory.propose("r", (), 64))


def test_every_memory_starts_with_them_and_learns_for_itself(tmp_path, held_out):
    known = read(tmp_path / "known", held_out)
    assert [record.answer_ids for record in known.records] == [KNOWN]
    first, second = known.memory(), known.memory()
    assert first_draft(first, "x") == KNOWN
    first.finish("r", NEW)
    assert first_draft(first, "x") == NEW
    assert first_draft(second, "x") == KNOWN
    assert first_draft(known.memory(), "x") == KNOWN


def test_where_nothing_is_known_memory_is_cold():
    memory = KnownAnswers().memory()
    assert first_draft(memory, "x") == ()
    memory.finish("r", NEW)
    assert first_draft(memory, "x") == NEW
    assert first_draft(memory, "y") == ()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"source": "lab, held out"}, CollectError, "without --held-out"),
        ({"target": replace(TARGET, digest="of another")}, EvaluationError, "another target"),
        ({"name": ""}, EvaluationError, "clips that are measured on"),
    ],
)
def test_what_would_make_the_figures_untrue_is_refused(tmp_path, held_out, options, error, said):
    with pytest.raises(error, match=said):
        read(tmp_path / "known", held_out, **options)


def test_a_folder_without_answers_is_refused(tmp_path, held_out):
    with pytest.raises(CollectError, match="no answers yet"):
        KnownAnswers.read(write_records(tmp_path / "known", {}, source="lab"), held_out)
