"""What drafts may take of a step and of the cache: nobody else's word, block or prompt."""

import pytest

pytest.importorskip("vllm")
from rig.schedule_engine import scheduler
from rig.schedule_harness import BLOCK_SIZE, Asked, Player, Turn
from rig.schedule_target import FIRST_WORD, VOCABULARY, likely_answer

pytestmark = pytest.mark.engine

STEP_TOKENS = 40
NUM_REQUESTS = 16
WORDS = VOCABULARY - FIRST_WORD


def asked(number: int, length: int = 4, max_tokens: int = 60, drafted: bool = True) -> Asked:
    """Drafted for with all of its answer, right or not."""
    prompt = tuple(FIRST_WORD + (number + 7 * place) % WORDS for place in range(length))
    params = {"max_tokens": max_tokens, "ignore_eos": True}
    if drafted:
        params["extra_args"] = {"headstart": {"draft": likely_answer(prompt, max_tokens)}}
    return Asked(f"request-{number}", (Turn(prompt, params),))


def player(max_draft_tokens: int, num_blocks: int = 400, **more: int) -> Player:
    return Player(
        scheduler(
            max_draft_tokens,
            num_blocks,
            max_num_batched_tokens=STEP_TOKENS,
            max_num_seqs=NUM_REQUESTS,
            **more,
        )
    )


def test_a_long_draft_keeps_no_other_request_from_its_own_word():
    made = player(32)
    for number in range(NUM_REQUESTS):
        made.add(asked(number))
    full_steps = 0
    while made.scheduler.requests:
        running = {request.request_id for request in made.scheduler.running}
        step = made.step()
        assert running <= step.num_scheduled_tokens.keys()
        full_steps += step.total_num_scheduled_tokens == STEP_TOKENS
    assert full_steps > 5  # drafts took all that the others left
    assert made.counts.accepted > 100


def test_of_a_step_with_prompts_drafts_take_a_quarter():
    made = player(32, max_model_len=160)
    made.add(asked(0, max_tokens=120))
    made.step()
    for number in range(1, 5):
        made.add(asked(number, length=90, max_tokens=1, drafted=False))
    for _ in range(4):
        step = made.step()
        drafted = sum(map(len, step.scheduled_spec_decode_tokens.values()))
        assert drafted == STEP_TOKENS // 4
        assert step.total_num_scheduled_tokens == STEP_TOKENS  # prompts have all the rest


def test_a_draft_puts_nobody_back():
    """Each of them grows into its own blocks; there are few left for what may be refused."""
    alone, drafted = (
        player(max_draft_tokens, NUM_REQUESTS * 2 + 1) for max_draft_tokens in (0, 32)
    )
    for made in (alone, drafted):
        for number in range(NUM_REQUESTS):
            made.add(asked(number, max_tokens=2 * BLOCK_SIZE - 4, drafted=made is drafted))
        while made.scheduler.requests:
            made.step()
    assert alone.counts.preemptions == drafted.counts.preemptions == 0
    assert drafted.counts.accepted > 0
    assert drafted.said == alone.said
