"""Whether a drafter is set to work, from what the target accepted of its words."""

from headstart.drafting.fate import Fate
from headstart.drafting.timeline import Timeline
from headstart.engine.answer import Answer
from headstart.engine.worth import DrafterWorth
from headstart.planner.thrift import PROBE_ANSWERS

SAID = tuple(range(100, 140))


def handed(num_accepted: int, source: str = "eventgpt") -> Fate:
    return Fate(source, 0, SAID[:12], 0.1, num_accepted)


def answered(*fates: Fate) -> Answer:
    return Answer("", SAID, "stop", 10, 0, Timeline(0.0, 1.0, ()), (0,) * len(SAID), fates)


def test_a_drafter_that_is_right_is_always_wanted():
    worth = DrafterWorth()
    for _ in range(50):
        assert worth.is_wanted("camera")
        worth.judge("camera", answered(handed(12), handed(3)))


def test_one_that_is_always_wrong_is_tried_now_and_then():
    worth, started = DrafterWorth(), 0
    for _ in range(20):
        if worth.is_wanted("camera"):
            worth.judge("camera", answered(handed(0)))
    for _ in range(10 * PROBE_ANSWERS):
        if worth.is_wanted("camera"):
            started += 1
            worth.judge("camera", answered(handed(0)))
    assert started == 10
    assert not worth.is_wanted("another camera")  # it has done nothing to be trusted there


def test_one_whose_words_are_never_handed_over_is_of_no_use_either():
    worth = DrafterWorth()
    for _ in range(20):
        worth.judge("camera", answered(handed(12, source="memory")))
    assert not worth.is_wanted("camera")


def test_it_comes_back_when_it_has_become_right():
    worth = DrafterWorth()
    for _ in range(20):
        worth.judge("camera", answered(handed(0)))
    assert not worth.is_wanted("camera")
    worth.judge("camera", answered(handed(8)))
    assert worth.is_wanted("camera")
