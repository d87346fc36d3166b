"""How many tokens of prompts fit beside answers. Passes cost what the test says."""

import pytest

from headstart.engine.prompt_pace import PATIENCE, PromptPace
from headstart.speculation.pass_costs import PassCosts

STEP_S, PROMPT_TOKEN_S = 0.040, 0.0002
BESIDE_ONE_STEP = int(PATIENCE * STEP_S / PROMPT_TOKEN_S)


@pytest.fixture
def costs() -> PassCosts:
    """Of an engine whose passes and prompts were timed."""
    costs = PassCosts()
    for _ in range(50):
        for batch in (1, 2, 4):
            costs.observe(batch, 0, STEP_S)
        costs.observe_prompts(4, 0, 1000, STEP_S + 1000 * PROMPT_TOKEN_S)
    return costs


def passed(pace: PromptPace, answers: list[str], prompt_tokens: int) -> None:
    seconds = STEP_S + PROMPT_TOKEN_S * prompt_tokens
    pace.pass_ended(answers, 0, prompt_tokens, seconds)


def test_nothing_is_held_back_where_nobody_waits_or_nothing_is_known(costs):
    assert PromptPace(costs).room([]) is None
    assert PromptPace(PassCosts()).room(["a"]) is None


def test_a_step_that_was_never_timed_is_computed_alone_first(costs):
    pace, answers = PromptPace(costs), [str(number) for number in range(16)]
    assert pace.room(answers) == 0
    costs.observe(16, 0, 2 * STEP_S)
    assert pace.room(answers) == pytest.approx(2 * BESIDE_ONE_STEP, rel=0.05)


def test_the_room_follows_what_steps_and_prompts_take(costs):
    pace, answers = PromptPace(costs), list("abcd")
    assert pace.room(answers) == pytest.approx(BESIDE_ONE_STEP, rel=0.05)
    for _ in range(300):  # the machine has become slower at prompts
        costs.observe_prompts(4, 0, 1000, STEP_S + 3000 * PROMPT_TOKEN_S)
    assert pace.room(answers) == pytest.approx(BESIDE_ONE_STEP / 3, rel=0.1)


def test_who_has_waited_is_spared_until_it_has_computed(costs):
    pace, answers = PromptPace(costs), list("abcd")
    passed(pace, answers, 4 * BESIDE_ONE_STEP)
    assert pace.room(answers) == 0
    passed(pace, answers, 0)
    assert pace.room(answers) == 0
    for _ in range(3):
        passed(pace, answers, 0)
    assert 0 < pace.room(answers) <= 2.1 * BESIDE_ONE_STEP


def test_one_that_has_waited_is_enough(costs):
    pace = PromptPace(costs)
    passed(pace, list("abcd"), 3 * BESIDE_ONE_STEP)
    assert pace.room(["e"]) > 0
    assert pace.room(["e", "a"]) == 0
    pace.forget("a")
    assert pace.room(["e", "a"]) > 0


def test_over_an_answer_the_wait_is_bounded_and_prompts_go_on(costs):
    """A hundred passes with prompts waiting all the time, whose pictures come in lumps."""
    pace, answers = PromptPace(costs), list("abcd")
    waited_s = 0.0
    for number in range(100):
        room = pace.room(answers)
        tokens = max(room, 600 if number % 7 == 0 and room else 0)
        passed(pace, answers, tokens)
        waited_s += tokens * PROMPT_TOKEN_S
    assert 0.8 * PATIENCE < waited_s / (100 * STEP_S) < 1.1 * PATIENCE


def test_a_pass_in_which_the_machine_was_elsewhere_does_not_stop_prompts_for_long(costs):
    pace, answers = PromptPace(costs), list("abcd")
    pace.pass_ended(answers, 0, 100, 30.0)
    for _ in range(20):
        passed(pace, answers, 0)
    assert pace.room(answers) > 0
