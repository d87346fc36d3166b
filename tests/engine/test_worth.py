"""Whether a drafter is set to work, from what it said and what was answered."""

from headstart.drafting.fate import Fate
from headstart.drafting.timeline import Span, Stage, Timeline
from headstart.engine.answer import Answer
from headstart.engine.wire import Drafted
from headstart.engine.worth import DrafterWorth
from headstart.planner.thrift import PROBE_ANSWERS

SAID = tuple(range(100, 140))


PREFILLED_S, ANSWERED_S = 1.0, 3.0


def answered(*fates: Fate) -> Answer:
    decoding = Span(Stage.DECODE, PREFILLED_S, ANSWERED_S)
    timeline = Timeline.of(0.0, ANSWERED_S, [decoding])
    return Answer("", SAID, "stop", 10, 0, timeline, (0,) * len(SAID), fates)


def drafted(
    tokens: tuple[int, ...], start: int = 0, source: str = "eventgpt", at_s: float = 0.5
) -> Drafted:
    return Drafted("ask", source, start, tokens, at_s)


def test_a_drafter_that_is_right_is_always_wanted():
    worth = DrafterWorth()
    for _ in range(50):
        assert worth.is_wanted("camera")
        worth.judge("camera", [drafted(SAID[:12])], answered())


def test_one_that_is_always_wrong_is_tried_now_and_then():
    worth, started = DrafterWorth(), 0
    for _ in range(20):
        if worth.is_wanted("camera"):
            worth.judge("camera", [drafted((1, 2, 3))], answered())
    for _ in range(10 * PROBE_ANSWERS):
        if worth.is_wanted("camera"):
            started += 1
            worth.judge("camera", [drafted((1, 2, 3))], answered())
    assert started == 10
    assert not worth.is_wanted("another camera")  # it has done nothing to be trusted there


def test_one_that_is_never_heard_in_time_is_of_no_use_either():
    worth = DrafterWorth()
    for _ in range(20):
        worth.judge("camera", [], answered())
    assert not worth.is_wanted("camera")


def test_it_comes_back_when_it_has_become_right():
    worth = DrafterWorth()
    for _ in range(20):
        worth.judge("camera", [drafted((1, 2, 3))], answered())
    assert not worth.is_wanted("camera")
    # Followed to the end of the answer, its last words are right.
    worth.judge(
        "camera", [drafted(SAID[20:], start=20)], answered(Fate("eventgpt", 0, (100,), 0.1, 1))
    )
    assert worth.is_wanted("camera")


def test_words_of_others_are_not_its_own():
    worth = DrafterWorth()
    for _ in range(20):
        worth.judge("camera", [drafted(SAID, source="memory")], answered())
    assert not worth.is_wanted("camera")


def test_words_that_only_repeat_what_was_just_said_are_of_no_use():
    worth = DrafterWorth()
    for _ in range(20):
        # At half time half the answer is said; these are right, and two tokens behind.
        worth.judge("camera", [drafted(SAID[18:20], start=18, at_s=2.0)], answered())
    assert not worth.is_wanted("camera")


def test_of_words_that_come_late_the_rest_counts():
    worth = DrafterWorth()
    for _ in range(20):
        worth.judge("camera", [drafted(SAID[:30], at_s=2.0)], answered())
    assert worth.is_wanted("camera")
