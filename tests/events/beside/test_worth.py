"""Whether the drafter is asked, from what the target accepted of its drafts."""

from headstart.speculation.draft import Draft, Verdict
from headstart_events.beside.worth import PROBE_ANSWERS, DraftWorth


def verified(num_accepted: int, source: str = "eventgpt") -> Verdict:
    return Verdict(Draft(tuple(range(100, 112)), source, 0.1), num_accepted)


def test_a_drafter_that_is_right_is_always_wanted():
    worth = DraftWorth()
    for _ in range(50):
        assert worth.is_wanted("camera")
        worth.judge("camera", [verified(12), verified(3)])


def test_one_that_is_always_wrong_is_tried_now_and_then():
    worth, started = DraftWorth(), 0
    for _ in range(20):
        if worth.is_wanted("camera"):
            worth.judge("camera", [verified(0)])
    for _ in range(10 * PROBE_ANSWERS):
        if worth.is_wanted("camera"):
            started += 1
            worth.judge("camera", [verified(0)])
    assert started == 10
    assert not worth.is_wanted("another camera")  # it has done nothing to be trusted there


def test_one_whose_drafts_are_never_verified_is_of_no_use_either():
    worth = DraftWorth()
    for _ in range(20):
        worth.judge("camera", [verified(12, source="memory")])
    assert not worth.is_wanted("camera")


def test_it_comes_back_when_it_has_become_right():
    worth = DraftWorth()
    for _ in range(20):
        worth.judge("camera", [verified(0)])
    assert not worth.is_wanted("camera")
    worth.judge("camera", [verified(8)])
    assert worth.is_wanted("camera")
