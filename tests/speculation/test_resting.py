"""Which requests need not be asked about, and for how long. Passes are counted, not timed."""

import pytest

from headstart.speculation.board import TextVocabulary
from headstart.speculation.budget import DraftBudget
from headstart.speculation.cascade import Cascade
from headstart.speculation.draft import Draft
from headstart.speculation.drafted_request import FIRST, LONGEST, Resting
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.earnings import LATER, OPENING, Judged
from headstart.speculation.pass_costs import PassCosts
from tests.speculation.scripted import Scripted

CAMERA, TEXT = StreamKey("", "camera"), TextVocabulary(1000)
SAID = (5, 6, 7)


def rests(resting, request, limit=100):
    """For how many passes from now on."""
    for number in range(limit):
        resting.pass_begins()
        if request not in resting.now:
            return number
    raise AssertionError("it rests for ever")


def test_rests_grow_up_to_a_bound_and_begin_anew_with_something_new():
    resting, request, found = Resting(), begin(Cascade([], TEXT)), []
    for _ in range(5):
        resting.rest(request)
        found.append(rests(resting, request))
    assert found == [FIRST, 2 * FIRST, 4 * FIRST, LONGEST, LONGEST]
    resting.rest(request)
    resting.wake(request)
    assert request not in resting.now
    resting.rest(request)
    assert rests(resting, request) == FIRST


def costs():
    """Of an engine on which drafts cost little, and passes without were timed."""
    known = PassCosts()
    for number in range(100):
        tokens = (number % 2) * 16
        known.observe(1, tokens, 0.020 + 0.0001 * tokens)
    return known


def wrong():
    """A cascade with a drafter that was never right."""
    drafter = Scripted({name: [*SAID, 8, 9, 10] for name in "abcdefgh"})
    cascade = Cascade([drafter], TEXT, budget=DraftBudget(costs()))
    for _ in range(50):
        judged = [Judged(OPENING, 8, 0), *[Judged(LATER, 8, 0)] * 8]
        cascade.earnings.credit(drafter.name, CAMERA, judged)
    return cascade


def begin(cascade, name="a"):
    return cascade.begin(DraftRequest(name, CAMERA, "q"))


def test_a_request_that_nothing_is_worth_asking_for_rests():
    cascade = wrong()
    request = begin(cascade)
    cascade.pass_begins(1)
    assert not cascade.propose(request, SAID, 8).tokens
    assert request in cascade.resting
    num_passes = 0
    while request in cascade.resting:
        cascade.pass_begins(1)
        num_passes += 1
    assert num_passes == FIRST + 1


def test_how_an_answer_begins_does_not_say_how_it_goes_on():
    cascade = wrong()
    request = begin(cascade)
    cascade.pass_begins(1)
    assert not cascade.propose(request, (), 8).tokens
    assert request not in cascade.resting


def test_a_request_is_asked_about_again_when_something_new_is_there():
    cascade = wrong()
    request = begin(cascade)

    def goes_to_rest():
        cascade.pass_begins(1)
        cascade.propose(request, SAID, 8)
        return request in cascade.resting

    assert goes_to_rest()
    cascade.see(request, {})
    assert request not in cascade.resting
    assert goes_to_rest()
    cascade.post(request, Draft((*SAID, 40, 41), "seeing", 0.0))
    assert request not in cascade.resting
    cascade.pass_begins(1)
    assert cascade.propose(request, SAID, 8).tokens == (40, 41)
    assert request not in cascade.resting


@pytest.mark.parametrize("answer", [(), SAID])
def test_nothing_is_kept_of_a_request_that_is_over(answer):
    cascade = wrong()
    request = begin(cascade)
    cascade.pass_begins(1)
    cascade.propose(request, SAID, 8)
    cascade.finish(request, answer)
    assert not cascade.resting


def test_nobody_rests_for_a_pass_that_goes_without_drafts_for_comparison():
    cascade = Cascade([Scripted({"a": [*SAID, 8, 9]})], TEXT, budget=DraftBudget())
    request = begin(cascade)
    num_plain = 0
    for _ in range(40):
        cascade.pass_begins(1)
        drafted = len(cascade.propose(request, SAID, 2).tokens)
        num_plain += not drafted
        assert request not in cascade.resting
        cascade.pass_ended(drafted, 0.020)
    assert num_plain > 1


def test_nobody_rests_because_others_have_filled_what_is_padded():
    """A device for which more than a padded size is too much."""
    known = PassCosts()
    for _ in range(100):
        known.observe(2, 0, 0.020)
        known.observe(2, 6, 0.020)
        known.observe(2, 14, 0.900)
    drafter = Scripted({name: [*SAID, *range(8, 40)] for name in "ab"})
    cascade = Cascade([drafter], TEXT, budget=DraftBudget(known, (8, 16)))
    one, other = begin(cascade), begin(cascade, "b")
    cascade.pass_begins(2)
    assert len(cascade.propose(one, SAID, 6).tokens) == 6
    assert not cascade.propose(other, SAID, 6).tokens
    assert not cascade.resting


def test_a_price_is_looked_at_again_as_often_while_requests_rest():
    """What held-back passes save pays for a probe, whether they are asked about or not."""
    known = PassCosts()
    for number in range(400):
        tokens = 16 * (number % 5)
        known.observe(16, tokens, 0.064 + 0.004 * tokens)
    asked, resting = DraftBudget(known), DraftBudget(known)
    probes = {"asked": 0, "resting": 0}
    for _ in range(1000):
        asked.pass_begins(16)
        probes["asked"] += sum(asked.draft_length([0.5], 4) > 0 for _ in range(16))
        resting.pass_begins(16, 15)
        probes["resting"] += resting.draft_length([0.5], 4) > 0
    assert probes["asked"] > 3
    assert probes["resting"] == pytest.approx(probes["asked"], abs=1)
