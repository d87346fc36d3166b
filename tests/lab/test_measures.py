"""Scores, parity and times of made-up answers: the arithmetic, without an engine."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from benchmarks.engine_times import EngineTimes, Spread
from benchmarks.lab_questions import held_out_questions, training_answers
from benchmarks.parity import FirstDifference, Spoken, compare
from headstart_lab.errors import LabError
from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import TARGET_STYLE, Answer
from headstart_lab.scoring import Reference, Tally, about, judge, usual_answers
from headstart_lab.split import Split

from headstart.answers.timeline import Span, Stage, Timeline


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


def spoken(*choices):
    """Each token with a logit of 2, the others with their number of tenths."""
    logits = torch.arange(8).repeat(len(choices), 1) / 10
    for row, choice in enumerate(choices):
        logits[row, choice] = 2.0
    return Spoken(choices, logits)


def test_answers_are_compared_up_to_their_first_difference():
    reference = [spoken(1, 2, 3), spoken(1, 2, 3), spoken(1, 2, 3), spoken(1, 2)]
    parity = compare([(1, 2, 3), (1, 5, 3), (1,), (1, 2, 3)], reference)
    assert parity.num_answers == 4
    assert parity.num_tokens == 3 + 2 + 2 + 2
    assert parity.differences == (
        FirstDifference(1, 1, pytest.approx(1.5)),
        FirstDifference(2, 1, None),
        FirstDifference(3, 2, None),
    )
    assert parity.rate == pytest.approx(3 / 9)
    assert parity.median_margin == pytest.approx(1.3)


def answered(vision, prefill, decode, num_tokens, num_cached=0):
    spans, now = [], 0.0
    for stage, length in ((Stage.VISION, vision), (Stage.PREFILL, prefill), (Stage.DECODE, decode)):
        spans.append(Span(stage, now, now + length))
        now += length
    return SimpleNamespace(
        timeline=Timeline.of(0.0, now, spans),
        token_ids=(7,) * num_tokens,
        num_cached_tokens=num_cached,
    )


def test_a_prefill_has_the_tower_in_it_and_a_step_is_one_token():
    times = EngineTimes.of([answered(0.01, 0.02, 0.1, 11), answered(0.01, 0.04, 0.3, 11)])
    assert times.prefill.median == pytest.approx(40)
    assert times.vision.median == pytest.approx(10)
    assert times.step.median == pytest.approx(20)
    assert times.step.p10 == pytest.approx(12)


def test_cached_prompts_and_single_answers_are_no_measurement():
    with pytest.raises(LabError, match="cached"):
        EngineTimes.of([answered(0.01, 0.02, 0.1, 11, num_cached=32)] * 2)
    with pytest.raises(LabError, match="at least 2"):
        Spread.of([1.0])
