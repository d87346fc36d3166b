"""Which question is asked about which clip, and which clips are new."""

from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart_research.bridge.pooling import LAST
from headstart_research.evaluation.asked_clips import AskedClip, AskedStreams
from headstart_research.evaluation.workload import FIRST_CLIPS, share_of_new, workloads
from tests.collect.records import clip_records
from tests.evaluation.made_up import answers_of, write_records

QUESTIONS = ("What?", "Who?", "Where?")
RECORD = clip_records("a", 0)[0]


def cut(folder, streams):
    return {
        work.name: work for work in workloads(AskedStreams.read(write_records(folder, streams)))
    }


def test_a_workload_asks_the_first_question_or_all_in_turn(tmp_path):
    streams = {
        name: [
            {q: answers_of([ord(name), number, len(q)]) for q in QUESTIONS} for number in range(5)
        ]
        for name in "ab"
    }
    found = cut(tmp_path, streams)
    for name, turns in (("one-question", [0] * 5), ("in-turn", [0, 1, 2, 0, 1])):
        for stream, clips in zip(found[name].streams, streams.values(), strict=True):
            for number, (answer, turn) in enumerate(zip(stream, turns, strict=True)):
                request = answer.logged.request
                assert request.question == QUESTIONS[turn]
                assert request.prompt == (50 + turn, 3)
                assert answer.logged.tokens == clips[number][QUESTIONS[turn]]
                assert answer.features[LAST][0, 0] == number
                assert answer.is_first == (number < FIRST_CLIPS)
        requests = [answer.logged.request for answer in found[name].answers]
        assert len({request.id for request in requests}) == 10
        assert {request.stream.stream for request in requests} == {"a", "b"}
    about = found["in-turn"].about()
    assert (about["streams"], about["answers"], about["tokens"]) == (2, 10, 120)
    assert about["first_clips"] == 6


def test_with_a_single_question_there_is_nothing_to_ask_in_turn(tmp_path):
    assert list(cut(tmp_path, {"a": [{"What?": (1, 2)}]})) == ["one-question"]


def test_a_scene_is_new_where_more_than_a_third_of_what_is_said_is(tmp_path):
    said = [
        ((1, 2, 3, 4), (7, 7)),
        ((1, 2, 3, 4), (7, 7)),
        ((1, 2, 8, 9), (7, 7)),  # two of six tokens: a third
        ((1, 2, 3, 4), (7, 6)),  # three of six
        ((4, 3, 2, 1), (6, 7)),
    ]
    found = cut(tmp_path, {"a": [dict(zip(QUESTIONS, answers, strict=False)) for answers in said]})
    for work in found.values():
        assert [a.is_new_scene for a in work.answers] == [False, False, False, True, False]
    assert found["in-turn"].about()["new_scenes"] == 1


def test_tokens_count_as_often_as_they_are_said(tmp_path):
    def clip(*answer):
        return AskedClip({"What?": replace(RECORD, answer_ids=answer)})

    assert share_of_new(clip(1, 1, 2), clip(2, 1)) == pytest.approx(1 / 3)
    assert share_of_new(clip(1, 2), clip(2, 1, 3)) == 0
    assert share_of_new(clip(1, 2), clip()) == 1
