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


def timed(last_ms: float, preview_ms: float | None = None) -> dict:
    ratio = {"value": 2.0, "low": 1.5, "high": 2.5}
    previewed = {"preview_ms": preview_ms, "preview_share": 0.25, "previews_right": 0.75}
    return {
        "first_word_ms": 400.0,
        "last_word_ms": last_ms,
        "over_bare": ratio,
        "over_whole": ratio,
        "same_answer": 1.0,
        **(previewed if preview_ms else {}),
    }


SPEED = {
    "num_clips": 24,
    "ways": {
        "bare vLLM, whole clip": timed(1200),
        "whole clip": timed(600),
        "frames 4, previewed": timed(650, 100),
        "events 50%": timed(400),
        "short clip 4": timed(400),
        "KV bridge": timed(200),
        "KV bridge, previewed": timed(700, 80),
    },
}
KV = {"ways": {"KV bridge": way(0.5, 10), "whole clip": way(0.1, 540)}}


@pytest.fixture
def kept(monkeypatch):
    """Runs that are made up, in place of the kept ones."""
    runs = {approximate.FACTS: FACTS, approximate.KV: KV, approximate.SPEED: SPEED}
    monkeypatch.setattr(approximate, "result", runs.__getitem__)


def test_speeds_stand_beside_facts(kept):
    lines = approximate.TABLES["approximate-speed"]().splitlines()
    assert lines[2] == "| bare vLLM, the whole clip | 400 ms | 1200 ms |  |  | 80.0% |"
    assert lines[3] == (
        "| the whole clip, exact | 400 ms | 600 ms | 2.00 (1.50 to 2.50) |  | 80.0% |"
    )
    assert lines[-1].startswith("| nothing: keys and values guessed from events | 400 ms | 200 ms")
    assert lines[-1].endswith("| 50.0% |")
    assert len(lines) == 2 + 5


def test_previews_are_a_table_of_their_own(kept):
    lines = approximate.TABLES["approximate-previews"]().splitlines()
    assert lines[2] == (
        "| frames by what happened, 4 | 100 ms | 400 ms | 0.25 | 75% | 650 ms |"
        " 2.00 (1.50 to 2.50) | 100% |"
    )
    assert len(lines) == 2 + 2


def test_the_picture_has_a_point_for_each_way_that_is_drawn(kept):
    drawn = ElementTree.fromstring(approximate.picture())
    circles = [each for each in drawn.iter() if each.tag.endswith("circle")]
    assert len(circles) == 4  # two ways to leave out, the KV bridge, and the exact answer
    assert len({circle.get("cx") for circle in circles}) == 3
    inside = [float(circle.get("cy")) for circle in circles]
    assert min(inside) > approximate.TOP
    assert max(inside) < approximate.BOTTOM


def test_a_way_without_words_is_an_error():
    with pytest.raises(StopIteration):
        approximate.kind("unheard of")
