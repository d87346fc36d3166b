"""Scores of made-up answers: the arithmetic, without an engine."""

from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import TARGET_STYLE, Answer
from headstart_lab.measures.questions import held_out_questions, training_answers
from headstart_lab.scoring import Reference, Tally, about, judge, usual_answers
from headstart_lab.split import Split


def test_facts_are_counted_by_question_and_by_what_they_are_about():
    facts = (Fact("ahead", "kind", "car"), Fact("weather", "is", "rain"))
    references = [
        Reference(Question.SAFE, Answer("A car ahead, in heavy rain.", facts)),
        Reference(Question.WEATHER, Answer("It must be a dry day.", (Fact("time", "is", "day"),))),
    ]
    scores = judge(["A bus directly ahead.", "It must be a dry day."], references)
    assert scores.num_questions == 2
    assert scores.facts == 0.5
    assert scores.exact == 0.5
    assert scores.of_question == {"SAFE": 0.0, "WEATHER": 1.0}
    assert scores.of_attribute == {
        "road user, kind": Tally(0, 1, 0),
        "time": Tally(1, 0, 0),
        "weather": Tally(0, 0, 1),
    }
    assert about(Fact("road", "lanes", "2")) == "road, lanes"


def test_the_usual_answer_is_a_reference_answer():
    usual = usual_answers(training_answers(TARGET_STYLE, num_drives=2, num_clips=3))
    assert set(usual) == set(Question)
    assert all(text.endswith(".") for text in usual.values())


def test_held_out_questions_are_of_all_kinds_and_none_twice_on_a_clip():
    asked = held_out_questions(32)
    assert sorted(a.question.name for a in asked) == sorted(2 * [q.name for q in Question])
    for clip in {id(a.clip) for a in asked}:
        kinds = [a.question for a in asked if id(a.clip) == clip]
        assert len(kinds) == len(set(kinds)) == 4
    assert all(a.wording in a.question.value for a in asked)
    assert [a.wording for a in held_out_questions(4)] == [a.wording for a in held_out_questions(4)]
    assert min(Split.HELD_OUT.value) > max(Split.TRAIN.value)
