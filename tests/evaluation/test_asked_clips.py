"""Held-out records as streams of clips, and what cannot be measured on."""

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import EvaluationError
from headstart_research.evaluation.asked_clips import AskedStreams
from tests.evaluation.made_up import answers_of, write_records


def test_clips_come_in_their_order_whatever_file_they_are_in(tmp_path):
    clips = {
        name: [{"What?": answers_of([place, number]), "Who?": (place, 7)} for number in range(5)]
        for place, name in enumerate(("b", "a"))
    }
    read = AskedStreams.read(write_records(tmp_path, clips))
    assert list(read.streams) == ["a", "b"]
    for name, found in read.streams.items():
        said = [{q: record.answer_ids for q, record in clip.asked.items()} for clip in found]
        assert said == clips[name]
        assert [clip.digest for clip in found] == [f"{name}-{number}" for number in range(5)]
    assert len(read.digests) == 10


def test_what_may_be_learnt_from_is_not_measured_on(tmp_path):
    write_records(tmp_path, {"a": [{"What?": (1,)}]}, source="lab")
    with pytest.raises(EvaluationError, match="--held-out"):
        AskedStreams.read(tmp_path)


def test_records_of_a_log_and_of_nothing_are_refused(tmp_path):
    with pytest.raises(EvaluationError, match="no records yet"):
        AskedStreams.read(write_records(tmp_path / "empty", {}))
    log = write_records(tmp_path / "log", {"a": [{}]})
    with pytest.raises(EvaluationError, match="a log, which has no clips"):
        AskedStreams.read(log)


def test_an_empty_answer_is_named(tmp_path):
    write_records(tmp_path, {"front": [{"What?": ()}]})
    with pytest.raises(EvaluationError, match="an empty answer, of front to 'What"):
        AskedStreams.read(tmp_path)
