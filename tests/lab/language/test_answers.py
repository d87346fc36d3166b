"""Answers: true to what each camera sees, varied, and different in the two styles."""

import re

import pytest

from headstart_lab.language.facts import Finding, find, score
from headstart_lab.language.phrases import PLAIN
from headstart_lab.language.questions import Question
from headstart_lab.language.sighting import sight_in_events, sight_in_frames
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.world.drive import SECOND_US, Drive
from headstart_lab.world.kinds import Daylight, Pace

STYLES = [pytest.param(TARGET_STYLE, id="target"), pytest.param(DRAFTER_STYLE, id="drafter")]


@pytest.fixture(scope="module")
def scenes():
    drives = [Drive(seed) for seed in range(30)]
    return [d.scene(s * SECOND_US + 950_000) for d in drives for s in range(0, 60, 12)]


def test_at_least_twelve_questions_each_in_three_wordings():
    assert len(Question) >= 12
    wordings = [wording for question in Question for wording in question.value]
    assert len(set(wordings)) == len(wordings) >= 3 * len(Question)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("question", list(Question), ids=lambda q: q.name)
def test_a_reference_answer_states_all_its_own_facts(scenes, style, question):
    answers = [style.answer(scene, question) for scene in scenes]
    assert any(answer.facts for answer in answers)
    for answer in answers:
        wrong = [fact for fact in answer.facts if find(answer.text, fact) is not Finding.RIGHT]
        assert not wrong, answer.text


@pytest.mark.parametrize("style", STYLES)
def test_answers_of_other_scenes_state_few_of_them(scenes, style):
    scores = []
    for scene, other in zip(scenes, scenes[7:], strict=False):
        for question in Question:
            facts = style.answer(scene, question).facts
            if facts:
                scores.append(score(style.answer(other, question).text, facts))
    assert sum(scores) / len(scores) < 0.45


def test_the_styles_open_differently_and_never_share_a_first_word(scenes):
    for question in Question:
        target = {TARGET_STYLE.answer(s, question).text.split()[0] for s in scenes}
        drafter = {DRAFTER_STYLE.answer(s, question).text.split()[0] for s in scenes}
        assert not target & drafter, question


def test_the_drafter_names_no_colour_no_lamp_and_no_hour(scenes):
    unseen = [p for v in PLAIN["thing", "colour"].values() for p in v]
    unseen += [p for v in PLAIN["time", "is"].values() for p in v]
    pattern = re.compile(r"\b(" + "|".join(unseen) + r")\b")
    for scene in scenes:
        for question in Question:
            answer = DRAFTER_STYLE.answer(scene, question)
            assert not pattern.search(answer.text.lower()), answer.text
            assert not {f.subject for f in answer.facts} & {"traffic light", "time"}


def test_events_of_a_standing_car_tell_nothing_static(scenes):
    standing = [scene for scene in scenes if scene.pace is Pace.STANDING]
    assert standing
    for scene in standing:
        sighting = sight_in_events(scene)
        assert sighting.ground is None
        assert all(group.moves for group in sighting.groups)


def test_frames_of_the_night_tell_nothing_far(scenes):
    nights = [scene for scene in scenes if scene.daylight is Daylight.NIGHT]
    groups = [group for scene in nights for group in sight_in_frames(scene).groups]
    assert groups
    assert all(
        group.kind.is_vehicle or group.reach.value != "far" or group.kind.value == "cyclist"
        for group in groups
    )


def test_the_most_salient_comes_first(scenes):
    seen = [[group.weight for group in sight_in_frames(scene).groups] for scene in scenes]
    assert any(len(set(weights)) > 1 for weights in seen)
    for weights in seen:
        assert weights == sorted(weights, reverse=True)


def test_a_small_change_keeps_the_words_until_it_matters():
    drive = Drive(1)
    texts = [
        TARGET_STYLE.answer(drive.scene(s * SECOND_US), Question.KEY_ELEMENTS).text
        for s in range(120)
    ]
    assert 30 < len(set(texts)) < 120
