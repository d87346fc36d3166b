"""Slots for drafts in pools that vLLM sized without them."""

import pytest

pytest.importorskip("vllm")
from rig.schedule_engine import LEAST, full_attention, scheduler, sliding_window
from rig.schedule_harness import Asked, Player, Turn
from rig.schedule_target import likely_answer

pytestmark = pytest.mark.engine

PROMPT = tuple(3 + place % 61 for place in range(300))
RIGHT = likely_answer(PROMPT, 40)
MAX_STEPS = 60
LAYERS = {
    "windows alone": {"window": sliding_window(64)},
    "two windows": {"wide": sliding_window(64), "narrow": sliding_window(20)},
    "full attention and a window": {"full": full_attention(), "window": sliding_window(64)},
    "full attention": {"full": full_attention()},
}


def answer(max_draft_tokens, layers, num_spare_blocks=0, max_num_batched_tokens=128):
    """What is said in a pool as small as vLLM starts with, and the steps that it took."""
    player = Player(
        scheduler(
            max_draft_tokens,
            LEAST,
            layers=LAYERS[layers],
            num_spare_blocks=num_spare_blocks,
            max_model_len=400,
            max_num_batched_tokens=max_num_batched_tokens,
            max_num_seqs=4,
        )
    )
    wrong = [*RIGHT[:20], RIGHT[20] - 1, *RIGHT[21:]]
    told = {"headstart": {"draft": wrong, "stream": "a"}}
    params = {"max_tokens": 40, "ignore_eos": True, "extra_args": told}
    player.add(Asked("one", (Turn(PROMPT, params),)))
    for num_steps in range(MAX_STEPS):
        if not player.scheduler.requests:
            return player.said["one"].turns[0], num_steps, player.counts
        player.step()
    return None, MAX_STEPS, player.counts


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("max_draft_tokens", [32, 128])
def test_a_request_is_answered_in_the_least_pool_that_vllm_starts_with(layers, max_draft_tokens):
    alone, _, _ = answer(0, layers)
    said, num_steps, counts = answer(max_draft_tokens, layers)
    assert alone == RIGHT
    assert said == alone
    assert counts.preemptions == 0
    assert counts.accepted >= 20
    assert num_steps < 40
