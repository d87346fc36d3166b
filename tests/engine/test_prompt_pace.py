"""How many tokens of prompts fit beside answers. Passes cost what the test says."""

import pytest

from headstart.engine.pass_clock import TimedPass
from headstart.engine.prompt_pace import HELD, PATIENCE, SHARE, Account, PromptPace
from headstart.speculation.pass_costs import PassCosts

STEP_S, PROMPT_TOKEN_S = 0.040, 0.0002
USUAL_TOKENS = 2000
"""Of prompts, for which the answers before have waited."""


@pytest.fixture
def costs() -> PassCosts:
    """Of an engine whose passes and prompts were timed."""
    costs = PassCosts()
    for _ in range(50):
        for batch in (1, 2, 4):
            costs.observe(batch, 0, STEP_S)
        costs.observe_prompts(4, 0, 1000, STEP_S + 1000 * PROMPT_TOKEN_S)
    return costs


@pytest.fixture
def pace(costs) -> PromptPace:
    """After a few answers that all waited for `USUAL_TOKENS`."""
    pace = PromptPace(costs)
    for _ in range(20):
        answered(pace, USUAL_TOKENS)
    return pace


def passed(pace: PromptPace, answers: list[Account], prompt_tokens: int, accepted: int = 4) -> None:
    seconds = STEP_S + PROMPT_TOKEN_S * prompt_tokens
    names = tuple(map(str, range(len(answers))))
    pace.pass_ended(TimedPass(names, 0, prompt_tokens, seconds), answers, accepted)


def answered(pace: PromptPace, prompt_tokens: int) -> None:
    """One answer, of one pass."""
    answer = pace.begin()
    passed(pace, [answer], prompt_tokens)
    pace.end(answer)


def test_nothing_is_held_back_where_nobody_waits_or_nothing_is_known(pace, costs):
    assert pace.room([], []) is None
    new = PromptPace(costs)
    answers = [new.begin()]
    passed(new, answers, 10 * USUAL_TOKENS)
    assert new.room(answers, []) is None
    unknown = PromptPace(PassCosts())
    assert unknown.room([unknown.begin()], []) is None


def test_nothing_is_held_back_while_answers_wait_as_others_did(pace):
    for _ in range(20):
        answers = [pace.begin() for _ in range(4)]
        for _ in range(4):
            passed(pace, answers, USUAL_TOKENS // 4)
            assert pace.room(answers, []) is None
        for answer in answers:
            pace.end(answer)


def test_after_a_quiet_time_a_crowd_is_not_late_at_once(pace):
    """Nobody has waited lately, so that anything would be longer than usual."""
    for _ in range(200):
        answered(pace, 0)
    one, other = pace.begin(), pace.begin()
    passed(pace, [one, other], USUAL_TOKENS)
    assert pace.room([one, other], []) is None
    passed(pace, [one], USUAL_TOKENS)
    assert pace.room([one, other], []) == 0


def test_one_that_has_waited_for_longer_is_spared(pace):
    one, other = pace.begin(), pace.begin()
    passed(pace, [one, other], USUAL_TOKENS)
    assert pace.room([one, other], []) is None
    passed(pace, [one], USUAL_TOKENS)
    assert pace.room([other], []) is None
    assert pace.room([one, other], []) == 0


def test_prompts_go_on_beside_an_answer_that_does_not_end(pace):
    """Hundreds of passes of a long answer, with prompts waiting all the time."""
    waited_s, answers = 0.0, [pace.begin()]
    patience_s = PATIENCE * USUAL_TOKENS * PROMPT_TOKEN_S
    for number in range(400):
        room = pace.room(answers, [])
        tokens = 1000 if room is None else min(1000, room)
        passed(pace, answers, tokens)
        waited_s += tokens * PROMPT_TOKEN_S
        allowed_s = max(patience_s + 1000 * PROMPT_TOKEN_S, SHARE * (number + 1) * STEP_S)
        assert waited_s < 1.05 * allowed_s
    assert 0.8 * SHARE < waited_s / (400 * STEP_S) < 1.1 * SHARE


def test_the_room_follows_what_steps_and_prompts_take(pace, costs):
    answers = [pace.begin()]
    passed(pace, answers, 2 * USUAL_TOKENS)
    while not pace.room(answers, []):
        passed(pace, answers, 0)
    before = pace.room(answers, [])
    for _ in range(300):  # the machine has become slower at prompts
        costs.observe_prompts(4, 0, 1000, STEP_S + 3000 * PROMPT_TOKEN_S)
    assert pace.room(answers, []) == pytest.approx(before / 3, rel=0.1)


def test_the_usual_wait_follows_the_answers(pace):
    answers = late(pace)
    assert pace.room(answers, []) == 0
    for _ in range(60):  # all wait for as long now
        answered(pace, 2 * USUAL_TOKENS)
    assert pace.room(answers, []) is None


def test_a_pass_in_which_the_machine_was_elsewhere_does_not_stop_prompts_for_long(pace):
    answers = [pace.begin()]
    pace.pass_ended(TimedPass(("a",), 0, 100, 30.0), answers, 4)
    assert (
        pace.room(answers, []) is None
    )  # it waited for a hundred tokens, and not for half a minute


def late(pace: PromptPace) -> list[Account]:
    """An answer that has waited for so long that its next passes hold prompts back."""
    answers = [pace.begin()]
    passed(pace, answers, 2 * USUAL_TOKENS)
    return answers


def test_nothing_is_held_back_while_drafts_say_few_words(pace):
    answers = late(pace)
    assert pace.room(answers, []) == 0
    num_passes = 0
    while pace.room(answers, []) is not None:  # none is accepted any more
        passed(pace, answers, 0, accepted=0)
        num_passes += 1
    assert 10 < num_passes < 100
    passed(pace, answers, 2 * USUAL_TOKENS, accepted=0)
    assert pace.room(answers, []) is None
    another = [pace.begin()]
    for _ in range(100):  # they are again
        passed(pace, another, 0)
    assert pace.room(answers, []) is not None


def test_a_prompt_is_held_back_for_a_share_of_what_prompts_take(pace, costs):
    answers, one_pass_s = late(pace), pace._one_pass_s
    first, held_s = pace.begin(), 0.0
    while pace.room(answers, [first]) is not None:
        passed(pace, answers, 0)
        held_s += STEP_S
    assert HELD * one_pass_s <= held_s < HELD * one_pass_s + STEP_S
    second = pace.begin()  # it has not been held back yet
    assert pace.room(answers, [second]) == 0
    assert pace.room(answers, [second, first]) is None


def test_passes_that_held_nothing_back_are_on_no_prompts_account(pace):
    answers, first = late(pace), pace.begin()
    for _ in range(100):  # there was nothing to hold back
        passed(pace, answers, 0)
    passed(pace, answers, 2 * USUAL_TOKENS)
    assert pace.room(answers, [first]) is not None


def test_where_prompts_are_not_cut_a_pass_computes_all_of_them_or_none(costs):
    pace = PromptPace(costs, cuts_prompts=False)
    for _ in range(20):
        answered(pace, USUAL_TOKENS)
    answers, rooms = late(pace), []
    while None not in rooms:
        rooms.append(pace.room(answers, []))
        passed(pace, answers, 0)
    assert rooms == [0] * (len(rooms) - 1) + [None]
    assert len(rooms) > 2


def test_pacing_prompts_costs_nobody_a_first_word_worth_speaking_of():
    """On a simulated clock, so that the figures are the same on any machine."""
    pytest.importorskip("vllm")
    from tests.soak.prompt_pace import constant, measured

    def p95(kind, ours, drafted):
        return measured(ours, drafted, seeds=2)[f"{kind}, p95"]

    first, short = "first word, undrafted", "short answer, undrafted"
    assert p95(first, True, 0.0) <= 1.02 * p95(first, False, 0.0)
    paced, bare = measured(True, 0.5, seeds=2), measured(False, 0.5, seeds=2)
    assert paced[f"{first}, p95"] <= 1.25 * bare[f"{first}, p95"]
    with constant("HELD", 0.0):
        assert paced[f"{short}, p95"] < 0.7 * p95(short, True, 0.5)
