"""Which requests make way for which, where prompts are paced; seen in the steps of a scheduler."""

import pytest

pytest.importorskip("vllm")
from headstart.engine.options import Sources
from headstart.engine.prompt_pace import cuts_prompts
from rig.schedule_harness import Player, scheduler
from tests.engine.test_scheduler_decisions import Fixed, asked, begin_answering

pytestmark = pytest.mark.engine

LONG = tuple(range(20, 60))


def answering(priority: int = 0, **arguments):
    """A player with a request that answers, beside which no prompt may be computed."""
    player = Player(scheduler(8, **arguments))
    begin_answering(player, "under way", priority=priority)
    player.scheduler._paced_steps.pace = Fixed(0)
    return player


@pytest.mark.parametrize(
    ("of_answer", "of_prompt", "makes_way"), [(5, 0, False), (0, 0, True), (0, 5, True)]
)
def test_a_prompt_makes_way_for_no_answer_that_is_less_urgent(of_answer, of_prompt, makes_way):
    player = answering(of_answer, scheduling_policy="priority")
    player.add(asked("new", LONG, priority=of_prompt))
    scheduled = player.step().num_scheduled_tokens
    assert scheduled == {"under way": 1} | ({} if makes_way else {"new": len(LONG)})


def test_without_priorities_of_vllms_prompts_make_way_for_all():
    player = answering(5)
    player.add(asked("new", LONG))
    assert player.step().num_scheduled_tokens == {"under way": 1}


def test_an_answer_that_was_put_back_computes_its_words_as_an_answer():
    size = 20  # of a step: the prompt and its words take two
    player = Player(scheduler(8, max_num_batched_tokens=size, enable_prefix_caching=False))
    made = player.scheduler
    begin_answering(player, "put back")
    begin_answering(player, "under way")
    (put_back,) = (one for one in made.running if one.request_id == "put back")
    made.running.remove(put_back)
    made._preempt_request(put_back, 0.0)
    made._paced_steps.pace = Fixed(0)
    assert player.step().num_scheduled_tokens == {"under way": 1, "put back": size - 1}
    player.add(asked("new", LONG))
    made.running.reverse()  # as if the other had begun after it
    missing = put_back.num_tokens - put_back.num_computed_tokens
    assert 1 < missing < size
    assert player.step().num_scheduled_tokens == {"put back": missing, "under way": 1}
    assert [one.request_id for one in made.running] == ["put back", "under way"]


def test_prompts_can_be_left_alone():
    player = Player(scheduler(8, sources=Sources(paced=False)))
    begin_answering(player, "under way")
    player.scheduler._paced_steps.pace = Fixed(0)
    player.add(asked("new", LONG))
    assert player.step().num_scheduled_tokens == {"under way": 1, "new": len(LONG)}


@pytest.mark.parametrize(
    ("arguments", "cuts"),
    [
        ({}, True),
        ({"disable_chunked_mm_input": True}, False),
        ({"enable_chunked_prefill": False}, False),
    ],
)
def test_a_prompt_that_vllm_computes_as_a_whole_is_not_cut(arguments, cuts):
    made = scheduler(8, **arguments)
    assert cuts_prompts(made.vllm_config) == cuts
    assert made._paced_steps.pace._cuts_prompts == cuts
