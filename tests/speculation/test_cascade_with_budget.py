"""A budgeted cascade inside an engine of the test's own: passes cost what they are said to cost."""

from dataclasses import dataclass
from random import Random

import pytest

from headstart.drafters.memory import Memory
from headstart.drafters.ngram import Ngram
from headstart.speculation.board import TextVocabulary
from headstart.speculation.budget import DraftBudget
from headstart.speculation.cascade import Cascade
from headstart.speculation.draft import NOTHING, Draft, Verdict
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.always_wrong import AlwaysWrong

TEXT = TextVocabulary(1000)
MAX_DRAFT = 32


@dataclass
class Engine:
    """A batch decoded in step; the time is counted, never measured."""

    cascade: Cascade
    step_s: float = 0.020
    row_s: float = 0.0
    token_s: float = 0.0004
    now_s: float = 0.0
    drafted: int = 0

    def answer(self, truths, number=0, posted=()):
        """All requests at once, one stream each, until the last is through."""
        said = dict.fromkeys(range(len(truths)), ())
        requests = {}
        for stream in said:
            request = DraftRequest(f"{number}/{stream}", StreamKey("", str(stream)), "q")
            requests[stream] = self.cascade.begin(request)
            for draft in posted:
                self.cascade.post(requests[stream], draft)
        while running := [s for s in said if len(said[s]) < len(truths[s])]:
            self.cascade.pass_begins(len(running))
            drafts = {}
            for stream in running:
                request = requests[stream]
                room = min(MAX_DRAFT, len(truths[stream]) - len(said[stream]) - 1)
                drafts[stream] = (
                    NOTHING  # the scheduler does not ask about those
                    if request in self.cascade.resting
                    else self.cascade.propose(request, said[stream], room)
                )
            drafted = sum(len(draft.tokens) for draft in drafts.values())
            seconds = self.step_s + self.row_s * len(running) + self.token_s * drafted
            self.now_s += seconds
            self.drafted += drafted
            self.cascade.pass_ended(drafted, seconds)
            for stream, draft in drafts.items():
                rest = truths[stream][len(said[stream]) :]
                said[stream] += rest[: Verdict.greedy(draft, rest).num_accepted + 1]
        for stream, words in said.items():
            assert words == truths[stream]
            self.cascade.finish(requests[stream], words)


def undrafted_s(engine, truths):
    """What the same answers take when nobody drafts."""
    longest = max(map(len, truths))
    return sum(
        engine.step_s + engine.row_s * sum(len(truth) > place for truth in truths)
        for place in range(longest)
    )


def unheard_of(rng, num_streams=1):
    """Answers nobody could know, of words no source here ever drafts."""
    return [tuple(rng.choices(range(100, 1000), k=40)) for _ in range(num_streams)]


def test_a_wrong_source_is_not_believed_until_the_answer_is_complete():
    engine = Engine(Cascade([AlwaysWrong()], TEXT, budget=DraftBudget()))
    truths = unheard_of(Random(1), num_streams=16)
    engine.answer(truths)
    two_each = 2 * len(truths) * MAX_DRAFT  # how the answer begins, and how it goes on
    assert 0 < engine.drafted <= two_each


@pytest.mark.parametrize("token_s", [0.0, 0.0004, 0.002])
def test_an_always_wrong_source_costs_under_two_hundredths_after_twenty_answers(token_s):
    rng, engine = (
        Random(1),
        Engine(Cascade([AlwaysWrong()], TEXT, budget=DraftBudget()), token_s=token_s),
    )
    for number in range(20):
        engine.answer(unheard_of(rng), number)
    assert engine.drafted > 0  # it was heard, and judged by what it said
    engine.now_s, plain_s = 0.0, 0.0
    for number in range(20, 60):
        truths = unheard_of(rng)
        plain_s += undrafted_s(engine, truths)
        engine.answer(truths, number)
    assert plain_s / engine.now_s >= 0.98


def test_a_posted_draft_that_is_always_wrong_is_not_paid_for_either():
    rng, engine = Random(2), Engine(Cascade([], TEXT, budget=DraftBudget()))
    before = 0
    for number in range(40):
        if number == 20:
            before = engine.drafted
        engine.answer(unheard_of(rng), number, [Draft(tuple(range(30)), "seeing", 0.0)])
    assert engine.drafted == before


@pytest.mark.parametrize("token_s", [0.002, 0.0002])
def test_sixteen_saturated_streams_keep_their_throughput(token_s):
    """Rows that cost what they compute: where a drafted token costs a row, drafting must end."""
    rng, cascade = Random(3), Cascade([Memory(), Ngram()], TEXT, budget=DraftBudget())
    engine = Engine(cascade, step_s=0.004, row_s=0.002, token_s=token_s)
    half_known = [list(truth) for truth in unheard_of(rng, 16)]
    plain_s = 0.0
    for number in range(30):
        for truth in half_known:
            for place in rng.sample(range(40), 20):  # every second word is new each time
                truth[place] = rng.randrange(100, 1000)
        truths = [tuple(truth) for truth in half_known]
        if number == 10:
            engine.now_s = 0.0
        if number >= 10:
            plain_s += undrafted_s(engine, truths)
        engine.answer(truths, number)
    assert plain_s / engine.now_s >= 0.97


def test_a_source_that_pays_is_still_used_to_the_full():
    rng, engine = Random(4), Engine(Cascade([Memory()], TEXT, budget=DraftBudget()))
    (truth,) = unheard_of(rng)
    for number in range(5):
        engine.answer([truth], number)
    engine.now_s, plain_s = 0.0, 20 * undrafted_s(engine, [truth])
    for number in range(5, 25):
        engine.answer([truth], number)
    assert plain_s / engine.now_s > 8  # forty words in two or three passes


def test_a_source_that_became_right_is_heard_again():
    rng, engine = Random(5), Engine(Cascade([], TEXT, budget=DraftBudget()))
    for number in range(30):
        engine.answer(unheard_of(rng), number, [Draft(tuple(range(30)), "seeing", 0.0)])
    before = engine.drafted
    for number in range(30, 60):
        truths = unheard_of(rng)
        engine.answer(truths, number, [Draft(truths[0], "seeing", 0.0)])
    assert engine.drafted > before + 100


def test_without_a_budget_drafting_is_as_it_was():
    rng, engine = Random(6), Engine(Cascade([AlwaysWrong()], TEXT))
    for number in range(30):
        engine.answer(unheard_of(rng), number)
    assert engine.drafted > 30 * 40 * 10


def test_what_is_cut_short_is_still_the_same_draft():
    cascade = Cascade([], TEXT, budget=DraftBudget())
    drafted = cascade.begin(DraftRequest("r", StreamKey("", "camera"), "q"))
    cascade.post(drafted, Draft(tuple(range(60)), "seeing", 7.5))
    cascade.pass_begins(16)
    proposal = cascade.propose(drafted, (), 50)
    assert 0 < len(proposal.tokens) < 50
    assert proposal.tokens == tuple(range(len(proposal.tokens)))
    assert (proposal.source, proposal.made_at_s) == ("seeing", 7.5)


def test_the_passes_judged_span_a_long_answer():
    cascade = Cascade([AlwaysWrong()], TEXT)
    drafted = cascade.begin(DraftRequest("r", StreamKey("", "camera"), "q"))
    for said in range(100):
        for _ in range(3):  # however often it is asked about
            cascade.propose(drafted, (200,) * said, 4)
    places = [asked.at for asked in drafted.passes]
    assert places[0] == 0
    assert 4 <= len(places) <= 8
    assert places[-1] >= 75
