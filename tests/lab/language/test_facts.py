"""Finding facts in free text: right, wrong, or not said."""

import pytest

from headstart_lab.language.facts import Fact, Finding, find, score
from headstart_lab.language.phrases import PLAIN
from headstart_lab.language.questions import Question
from headstart_lab.language.road_user_phrases import NOUNS, NUMBERS, ROLES
from headstart_lab.language.styles import TARGET_STYLE
from headstart_lab.world.drive import SECOND_US, Drive

TEXT = (
    "The main elements here are a red bus in front of us, two pedestrians crossing from the left, "
    "a traffic light showing green, and a city street. Trees can be seen on the left and a hedge "
    "on the right. It looks like a rainy night."
)
FACTS = (
    Fact("ahead", "kind", "bus"),
    Fact("ahead", "colour", "red"),
    Fact("crossing from left", "kind", "pedestrian"),
    Fact("crossing from left", "count", "2"),
    Fact("traffic light", "colour", "green"),
    Fact("place", "is", "city"),
    Fact("left side", "is", "trees"),
    Fact("right side", "is", "hedge"),
    Fact("weather", "is", "rain"),
    Fact("time", "is", "night"),
)


def test_all_are_found():
    assert score(TEXT, FACTS) == 1.0
    assert score("", FACTS) == 0.0
    assert score("anything", ()) == 1.0


@pytest.mark.parametrize(
    ("said", "instead", "lost"),
    [
        ("red bus", "blue bus", FACTS[1]),
        ("red bus", "red truck", FACTS[0]),
        ("two pedestrians", "three pedestrians", FACTS[3]),
        ("two pedestrians", "two cyclists", FACTS[2]),
        ("showing green", "showing red", FACTS[4]),
        ("city street", "country road", FACTS[5]),
        ("Trees", "Open fields", FACTS[6]),
        ("rainy", "foggy", FACTS[8]),
        ("night", "day", FACTS[9]),
    ],
)
def test_one_word_swapped_loses_exactly_that_fact(said, instead, lost):
    text = TEXT.replace(said, instead)
    assert [fact for fact in FACTS if find(text, fact) is not Finding.RIGHT] == [lost]
    assert find(text, lost) is Finding.WRONG


def test_other_words_for_the_same_are_right():
    text = TEXT.replace("bus in front of us", "coach directly ahead")
    text = text.replace("two pedestrians", "a pair of walkers").replace("rainy", "drizzly")
    assert score(text, FACTS) == 1.0


def test_what_is_not_mentioned_is_absent_not_wrong():
    assert find("It looks like a rainy night.", FACTS[0]) is Finding.ABSENT
    assert find("A blue truck parked on the left.", FACTS[0]) is Finding.ABSENT


def test_swapping_a_colour_or_kind_in_real_answers_loses_exactly_that_fact():
    num_swaps = 0
    for seed in range(12):
        scene = Drive(seed).scene(20 * SECOND_US)
        answer = TARGET_STYLE.answer(scene, Question.VEHICLES)
        coloured = [fact for fact in answer.facts if fact.attribute == "colour"]
        if len(coloured) != 1 or answer.text.count(coloured[0].value) != 1:
            continue
        other = "blue" if coloured[0].value != "blue" else "red"
        text = answer.text.replace(coloured[0].value, other)
        lost = [fact for fact in answer.facts if find(text, fact) is not Finding.RIGHT]
        assert lost == coloured
        num_swaps += 1
    assert num_swaps


def all_slots():
    yield from PLAIN.items()
    yield ("thing", "kind"), NOUNS
    yield ("thing", "count"), NUMBERS


@pytest.mark.parametrize(("slot", "values"), list(all_slots()), ids=str)
def test_no_phrase_of_a_value_contains_one_of_another(slot, values):
    for value, phrases in values.items():
        for other, others in values.items():
            if value != other and "none" not in (value, other):
                clashes = [(a, b) for a in phrases for b in others if f" {a} " in f" {b} "]
                assert not clashes


def test_no_role_is_said_in_the_words_of_another():
    for role, styles in ROLES.items():
        own = [phrase for phrases in styles for phrase in phrases]
        for other, other_styles in ROLES.items():
            if role != other:
                theirs = [phrase for phrases in other_styles for phrase in phrases]
                assert not [(a, b) for a in own for b in theirs if f" {a} " in f" {b} "]
