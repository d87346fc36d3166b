"""Table and picture of approximate answers, from figures that are made up."""

from xml.etree import ElementTree

import pytest
from benchmarks.figures import approximate


def way(facts: float, tokens: float, same: float = 0.5) -> dict:
    return {
        "facts": facts,
        "less_than_whole_low": 0.01,
        "less_than_whole_high": 0.03,
        "same_answer": same,
        "dropped_share": 0.5,
        "prompt_tokens": tokens,
    }


FACTS = {
    "num_questions": 40,
    "ways": {
        "whole clip": way(0.8, 540, 1.0),
        "events 50%": way(0.78, 280),
        "events auto": way(0.79, 400),
        "even 50%": way(0.7, 284),
        "frames 4": way(0.75, 280),
        "short clip 4": way(0.74, 280),
        "oldest whole 50%": way(0.6, 280),
    },
}


def test_facts_are_shown_with_what_is_lost():
    lines = approximate.facts(FACTS).splitlines()
    assert lines[0].startswith("| lab pair, 40 questions: shown |")
    assert lines[2] == "| the whole clip, exact | 540 | 80.0% |  | 100% |"
    assert lines[3] == "| patches that changed, 50% | 280 | 78.0% | 2.0 (1.0 to 3.0) | 50% |"
    assert len(lines) == 2 + len(FACTS["ways"])


def test_the_picture_has_a_point_for_each_way_that_is_drawn(monkeypatch):
    monkeypatch.setattr(approximate, "result", lambda name: FACTS)
    drawn = ElementTree.fromstring(approximate.picture())
    circles = [each for each in drawn.iter() if each.tag.endswith("circle")]
    assert len(circles) == 5
    assert len({circle.get("cx") for circle in circles}) == 3
    inside = [float(circle.get("cy")) for circle in circles]
    assert min(inside) > approximate.TOP
    assert max(inside) < approximate.BOTTOM


def test_a_way_without_words_is_an_error():
    with pytest.raises(StopIteration):
        approximate.kind("unheard of")
