"""Which draft is asked for: the cheapest that is right wins."""

import pytest

from headstart.speculation.budget import DraftBudget
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.earnings import Judged, draft_kind
from headstart.speculation.expectations import Expectations

STEP_S = 0.010
CAMERA = StreamKey("tenant", "camera")
REQUEST = DraftRequest("r", CAMERA, "q")
NOTHING_YET = Draft((), "", 0.0, 20)


def found(num_tokens, match=32, source="memory", start=33):
    return Draft((7,) * num_tokens, source, 0.0, start, match)


def expectations(later_s=0.4 * STEP_S, opening_s=STEP_S):
    """A bridge that takes so long, on an engine whose steps are known."""
    budget = DraftBudget()
    for _ in range(8):
        budget.pass_begins(1)
        budget.pass_ended(0, STEP_S)
    budget.pass_begins(1)
    made = Expectations(frozenset({"memory"}), budget)
    made.asking.note("bridge", False, later_s)
    made.asking.note("bridge", True, opening_s)
    return made


def earned(made, source, kind, num_drafted, num_accepted, times=20):
    for _ in range(times):
        made.earnings.credit(source, CAMERA, [Judged(kind, num_drafted, num_accepted)])


def asks_bridge(made, in_hand, max_tokens=32, request=REQUEST):
    sources = made.order(request, ["memory", "bridge"], is_opening=not in_hand.start)
    bridge = next(source for source in sources if source.name == "bridge")
    return made.is_worth_asking(request, bridge, in_hand, max_tokens)


def test_a_sure_copy_is_followed_without_asking_who_takes_time():
    made, sure = expectations(), found(32)
    for source in ("memory", "bridge"):
        earned(made, source, draft_kind(sure), 32, 32)
    assert not asks_bridge(made, sure)


def test_an_unsure_copy_is_not():
    made, sure, unsure = expectations(), found(32), found(32, match=1)
    earned(made, "memory", draft_kind(sure), 32, 32)
    earned(made, "memory", draft_kind(unsure), 32, 2)
    for draft in (sure, unsure):
        earned(made, "bridge", draft_kind(draft), 32, 12)
    assert asks_bridge(made, unsure)
    assert not asks_bridge(made, sure)


def test_where_a_remembered_answer_ends_little_is_left_to_win():
    made, whole, end = expectations(), found(32), found(4)
    earned(made, "memory", draft_kind(whole), 32, 12)
    earned(made, "bridge", draft_kind(whole), 32, 24)
    assert asks_bridge(made, whole)
    assert not asks_bridge(made, end)
    # Of a source that remembers no answers, a short draft does not say that there is an end.
    earned(made, "ngram", draft_kind(end), 32, 12)
    assert asks_bridge(made, found(4, source="ngram"))
    # Nor does memory's, where it was asked for no more.
    changed = DraftRequest("r", CAMERA, "q", change=0.5)
    assert asks_bridge(made, found(16), request=changed)


def test_with_nothing_in_hand_a_draft_must_be_worth_its_time():
    made = expectations()
    earned(made, "bridge", draft_kind(NOTHING_YET), 8, 1)
    assert asks_bridge(made, NOTHING_YET)
    slow = expectations(later_s=3 * STEP_S)
    earned(slow, "bridge", draft_kind(NOTHING_YET), 8, 1)
    assert not asks_bridge(slow, NOTHING_YET)


def test_the_time_before_the_first_token_has_a_price_of_its_own():
    made = expectations(later_s=0.2 * STEP_S, opening_s=2.0 * STEP_S)
    prices = {
        is_opening: {s.name: s.price for s in made.order(REQUEST, ["bridge"], is_opening)}
        for is_opening in (True, False)
    }
    assert prices == {
        True: {"bridge": pytest.approx(2.0, rel=0.1)},
        False: {"bridge": pytest.approx(0.2, rel=0.1)},
    }
    opening, later = found(32, 1, start=0), found(32, 1, start=5)
    for draft in (opening, later):
        earned(made, "memory", draft_kind(draft), 32, 20)
        earned(made, "bridge", draft_kind(draft), 32, 21)
    assert not asks_bridge(made, opening)
    assert asks_bridge(made, later)


def test_a_gain_that_hardly_pays_for_the_wait_is_not_waited_for():
    made, later = expectations(later_s=0.8 * STEP_S), found(32, 1)
    earned(made, "memory", draft_kind(later), 8, 3)
    earned(made, "bridge", draft_kind(later), 8, 4)
    assert not asks_bridge(made, later, 8)
    quicker = expectations(later_s=0.4 * STEP_S)
    earned(quicker, "memory", draft_kind(later), 8, 3)
    earned(quicker, "bridge", draft_kind(later), 8, 4)
    assert asks_bridge(quicker, later, 8)


def test_who_takes_no_time_comes_first_however_little_it_earned():
    made = expectations()
    earned(made, "bridge", draft_kind(NOTHING_YET), 32, 30)
    earned(made, "memory", draft_kind(NOTHING_YET), 32, 1)
    earned(made, "ngram", draft_kind(NOTHING_YET), 32, 3)
    order = made.order(REQUEST, ["memory", "ngram", "bridge"], is_opening=False)
    assert [source.name for source in order] == ["ngram", "memory", "bridge"]


def test_without_a_budget_time_has_no_price():
    made = Expectations(frozenset({"memory"}), None)
    made.asking.note("bridge", False, 10.0)
    earned(made, "bridge", draft_kind(NOTHING_YET), 32, 30)
    earned(made, "memory", draft_kind(NOTHING_YET), 32, 1)
    order = made.order(REQUEST, ["memory", "bridge"], is_opening=False)
    assert [source.name for source in order] == ["bridge", "memory"]
    assert asks_bridge(made, found(32))
    assert made.paying_length(REQUEST, found(32)) == 32
