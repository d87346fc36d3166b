"""The decision to draft, on a clock of the test's own: figures are given, none is measured."""

import random
from dataclasses import dataclass, field

import pytest

from headstart.speculation.budget import PLAIN_EARLY, DraftBudget
from headstart.speculation.earnings import LATER, OPENING, Earnings, Judged
from headstart.speculation.pass_costs import PassCosts

GOOD, BAD, CAMERA = "good", "bad", "camera"


def timed(
    costs: PassCosts, batch: int, step_s: float, token_s: float, drafting_s: float = 0.0
) -> None:
    """Passes of an engine that costs exactly this, drafts of many lengths among them."""
    rng = random.Random(0)
    for _ in range(400):
        tokens = rng.choice([0, 0, 4, 16, 32]) * batch
        costs.observe(batch, tokens, step_s + (drafting_s + token_s * tokens if tokens else 0.0))


@dataclass
class Budgeted:
    """A budget, and the earnings that it is asked about."""

    earnings: Earnings = field(default_factory=Earnings)
    budget: DraftBudget = field(default_factory=DraftBudget)

    @property
    def costs(self) -> PassCosts:
        return self.budget.costs

    def length(
        self,
        key: str,
        max_tokens: int = 32,
        batch: int = 1,
        camera: str = CAMERA,
        kind: int = LATER,
    ) -> int:
        self.budget.pass_begins(batch)
        survival = self.earnings.survival(key, camera, kind)
        return self.budget.draft_length(survival, max_tokens)


def later(*passes: tuple[int, int]) -> list[Judged]:
    """Passes of an answer that has begun: what was drafted for each, and accepted."""
    return [Judged(LATER, *drafted_and_accepted) for drafted_and_accepted in passes]


def judged() -> Earnings:
    earnings = Earnings()
    for _ in range(20):
        earnings.credit(GOOD, CAMERA, later((32, 20), (32, 8), (32, 32)))
        earnings.credit(BAD, CAMERA, later(*[(32, 0)] * 8))
    return earnings


def test_the_cost_of_a_pass_is_learnt_from_timed_passes():
    pace = PassCosts()
    timed(pace, 1, step_s=0.020, token_s=0.0004, drafting_s=0.001)
    cost = pace.cost(1)
    assert cost.step_s == pytest.approx(0.020, rel=0.01)
    assert cost.token_s == pytest.approx(0.0004, rel=0.1)
    assert cost.drafting_s == pytest.approx(0.001, rel=0.2)
    assert pace.cost(16) is None


def test_a_pass_that_was_interrupted_changes_little():
    pace = PassCosts()
    timed(pace, 1, step_s=0.020, token_s=0.0004)
    before = pace.cost(1).step_s
    pace.observe(1, 0, 5.0)
    assert pace.cost(1).step_s < 1.1 * before


@pytest.mark.parametrize("warming_s", [0.1, 4.7])
def test_an_engine_that_was_warming_up_is_not_held_against_drafts(warming_s):
    budget = Budgeted(judged())
    lengths = []
    for number in range(40):
        lengths.append(budget.length(GOOD))
        first_draft = lengths[-1] and not any(lengths[:-1])
        budget.budget.pass_ended(lengths[-1], warming_s if first_draft or number == 0 else 0.021)
    assert sum(map(bool, lengths)) > 30
    assert budget.costs.cost(1).step_s == pytest.approx(0.021, rel=0.05)


def test_a_machine_that_becomes_slower_is_believed():
    pace = PassCosts()
    timed(pace, 1, step_s=0.020, token_s=0.0004)
    timed(pace, 1, step_s=0.060, token_s=0.0012)
    assert pace.cost(1).step_s == pytest.approx(0.060, rel=0.02)


def test_one_request_drafts_far_where_verifying_is_nearly_free():
    budget = Budgeted(judged())
    timed(budget.costs, 1, step_s=0.020, token_s=0.0002)
    assert budget.length(GOOD) == 32


def test_a_source_that_is_always_wrong_is_not_listened_to_and_never_probed():
    budget = Budgeted(judged())
    timed(budget.costs, 1, step_s=0.020, token_s=0.0)
    assert [budget.length(BAD) for _ in range(500)] == [0] * 500


def test_twenty_wrong_answers_are_enough_to_stop():
    budget, paid = Budgeted(), []
    timed(budget.costs, 1, step_s=0.020, token_s=0.0004)
    for _ in range(30):
        length = budget.length(BAD)
        paid.append(length)
        budget.earnings.credit(BAD, CAMERA, later(*[(32, 0)] * 8))
    assert paid[0] > 0  # nobody is condemned unheard
    assert not any(paid[5:])


def test_a_source_earns_trust_again_without_being_paid_for():
    budget = Budgeted(judged())
    timed(budget.costs, 1, step_s=0.020, token_s=0.0004)
    assert budget.length(BAD) == 0
    for _ in range(10):
        budget.earnings.credit(BAD, CAMERA, later(*[(32, 16)] * 8))
    assert budget.length(BAD) >= 8


def test_a_saturated_batch_stops_even_a_good_source():
    """Sixteen requests on an engine bound by arithmetic: a drafted token costs what a row costs."""
    budget = Budgeted(judged())
    timed(budget.costs, 16, step_s=0.064, token_s=0.004)
    asked = 16 * 1000
    num_probes = sum(budget.length(GOOD, batch=16) > 0 for _ in range(asked))
    # A look at the price now and then, for less than a hundredth of the passes' time.
    assert 0 < num_probes * 4 * 0.004 < 0.01 * asked / 16 * 0.064
    # Where rows are cheap the same batch drafts.
    timed(budget.costs, 16, step_s=0.064, token_s=0.0004)
    assert budget.length(GOOD, batch=16) >= 4


def test_a_price_that_was_a_busy_moments_is_found_out():
    budget = Budgeted(judged())
    timed(budget.costs, 1, step_s=0.020, token_s=0.030)
    assert budget.length(GOOD) == 0
    for _ in range(20_000):
        length = budget.length(GOOD)
        # Quiet again: drafts now cost next to nothing.
        budget.budget.pass_ended(length, 0.020 + 0.0002 * length)
    lengths = [budget.length(GOOD) for _ in range(3)]
    assert 32 in lengths


def test_plain_passes_are_timed_early_and_then_rarely():
    budget = Budgeted(judged())
    lengths = []
    for _ in range(400):
        lengths.append(budget.length(GOOD))
        budget.budget.pass_ended(lengths[-1], 0.020)
    assert lengths[0] > 0  # the first answer has its head start, too
    assert lengths[:40].count(0) == 4
    assert 2 <= lengths[40:].count(0) <= 3


@pytest.mark.parametrize("batch", [1, 4, 16])
@pytest.mark.parametrize("token_s", [0.0, 0.0005, 0.002, 0.008])
@pytest.mark.parametrize("chance", [0.0, 0.1, 0.5, 0.9])
def test_drafting_never_costs_more_than_a_few_hundredths(batch, token_s, chance):
    """A whole run played out: budget against not drafting at all, after it has seen 20 answers."""
    step_s, drafting_s, rng = 0.020 + 0.001 * batch, 0.001, random.Random(7)
    budget, key = Budgeted(), "played"
    spent_s = plain_s = 0.0
    for answer in range(120):
        missing, passes = 50, []
        while missing > 0:
            length = budget.length(key, min(32, missing - 1), batch)
            offered = min(32, missing - 1)
            right = 0
            while right < offered and rng.random() < chance:
                right += 1
            passes.append((offered, right))
            # All requests of the batch draft alike.
            extra_s = drafting_s + token_s * length * batch if length else 0.0
            budget.budget.pass_ended(length * batch, step_s + extra_s)
            tokens = 1 + min(right, length)
            if answer >= 20:
                spent_s += step_s + extra_s
                plain_s += step_s * min(tokens, missing)
            missing -= tokens
        budget.earnings.credit(key, CAMERA, later(*passes[:8]))
    assert plain_s / spent_s > 0.98
    if chance == 0.9 and batch * token_s < 0.001:
        assert plain_s / spent_s > 3


def test_what_is_kept_is_bounded():
    earnings = Earnings(max_keys=10)
    for number in range(100):
        earnings.credit("source", number, later((4, 1)))
    assert len(earnings) == 10


def test_on_a_new_stream_a_source_is_expected_to_be_as_elsewhere():
    budget = Budgeted(judged())
    timed(budget.costs, 1, step_s=0.020, token_s=0.0004)
    assert budget.length(BAD, camera="another camera") == 0
    assert budget.length(GOOD, camera="another camera") > 0
    assert budget.length("unheard of", camera="another camera") > 16


def test_how_an_answer_begins_and_how_it_goes_on_are_judged_apart():
    budget = Budgeted()
    timed(budget.costs, 1, step_s=0.020, token_s=0.0004)
    for _ in range(20):
        budget.earnings.credit(GOOD, CAMERA, [Judged(OPENING, 32, 24), *later(*[(32, 0)] * 6)])
    assert budget.length(GOOD, kind=OPENING) >= 24
    assert budget.length(GOOD) == 0


def test_a_saved_pass_is_worth_the_prompts_in_it_too():
    earnings = Earnings()
    for _ in range(20):
        earnings.credit(GOOD, CAMERA, later(*[(32, right) for right in (0, 1, 2, 4, 8, 16)]))
    budget = Budgeted(earnings)
    timed(budget.costs, 16, step_s=0.048, token_s=0.002)
    alone = budget.length(GOOD, batch=16)
    for _ in range(100):
        budget.costs.observe_prompts(16, 0, prompt_tokens=1000, seconds=0.248)
    assert budget.costs.prompts_s == pytest.approx(0.200, rel=0.1)
    assert budget.length(GOOD, batch=16) > alone
    for _ in range(200):
        budget.budget.pass_begins(16)
        budget.budget.pass_ended(0, 0.048)
    assert budget.length(GOOD, batch=16) == alone


def test_what_a_prompt_takes_is_the_rest_of_its_pass():
    costs = PassCosts()
    timed(costs, 4, step_s=0.030, token_s=0.0005)
    assert costs.prompt_token_s is None
    for _ in range(30):
        taken_s = costs.observe_prompts(4, 10, prompt_tokens=500, seconds=0.030 + 0.005 + 0.080)
    assert taken_s == pytest.approx(0.080, rel=0.05)
    assert costs.prompt_token_s == pytest.approx(0.080 / 500, rel=0.05)
    costs.observe_prompts(4, 0, prompt_tokens=500, seconds=20.0)  # the machine was elsewhere
    assert costs.prompt_token_s < 1.2 * 0.080 / 500


def test_tokens_that_only_fill_up_a_padded_size_are_free():
    """A device that computes 4, 8, 16, ... tokens, and for which 8 more are too many."""
    earnings = Earnings()
    for _ in range(20):
        earnings.credit(GOOD, CAMERA, later(*[(32, right) for right in (0, 1, 2, 3)]))
    budget = Budgeted(earnings, DraftBudget(padded_sizes=(4, 8, 16, 32, 64)))
    for _ in range(100):  # a padded token costs half a step
        for batch in (1, 2):
            budget.costs.observe(batch, 0, 0.020)
            budget.costs.observe(batch, 4, 0.060)
            budget.costs.observe(batch, 8, 0.100)
    assert budget.length(GOOD) == 3  # with the request's own token, four
    unpadded = Budgeted(earnings, DraftBudget(budget.costs))
    assert unpadded.length(GOOD) < 3
    # What one request takes is no longer free for the next.
    budget.budget.pass_begins(2)
    survival = earnings.survival(GOOD, CAMERA, LATER)
    assert budget.budget.draft_length(survival, 32) == 2
    budget.budget.spend(2)
    assert budget.budget.draft_length(survival, 32) == 0


def test_a_pass_with_the_prompt_never_goes_without_a_draft_for_comparison():
    """It is not compared with passes that only decode, so nothing would be learnt by it."""
    budgeted = Budgeted(judged())
    for _ in range(PLAIN_EARLY):
        assert budgeted.length(GOOD) > 0
        budgeted.budget.pass_ended(16, 0.020)
    assert budgeted.length(GOOD) == 0
    shares = budgeted.earnings.survival(GOOD, CAMERA, LATER)
    assert budgeted.budget.draft_length(shares, 32, with_prompt=True) > 0
    assert budgeted.length(GOOD) == 0  # the next pass that only decodes is still the one
