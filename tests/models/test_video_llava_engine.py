"""Our Video-LLaVA on a real vLLM engine, held against transformers, and its prefix cache."""

import numpy as np
import pytest
import torch

from headstart.models.video_llava.view import video_geometry
from tests.models.oracle import (
    BLOCK_SIZE,
    Asked,
    Oracle,
    num_same_tokens,
    random_asked,
    random_clip,
)

pytestmark = pytest.mark.engine

NUM_CLIPS = 20
MAX_TOKENS = 16


@pytest.fixture(scope="module", params=["tiny_target", "real_geometry_target"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def geometry(engine):
    return video_geometry(engine.llm_engine.model_config.hf_config)


@pytest.fixture
def ask(engine):
    engine.reset_prefix_cache()

    from vllm import SamplingParams

    def ask(asked: list[Asked], max_tokens: int = MAX_TOKENS, logprobs: int | None = None):
        # No text: the embedding has rows for ids no tokenizer knows, as the published one.
        params = SamplingParams(
            temperature=0.0, max_tokens=max_tokens, logprobs=logprobs, detokenize=False
        )
        return engine.generate([a.prompt for a in asked], params, use_tqdm=False)

    return ask


def tokens(output) -> list[int]:
    return list(output.outputs[0].token_ids)


def logits(output) -> torch.Tensor:
    rows = output.outputs[0].logprobs
    return torch.tensor([[row[i].logprob for i in range(len(row))] for row in rows])


def test_tokens_and_logits_equal_transformers(ask, checkpoint, rng):
    oracle = Oracle(checkpoint)
    asked = random_asked(rng, NUM_CLIPS)
    different_answers = set()
    for clip, output in zip(asked, ask(asked, logprobs=-1), strict=True):
        assert output.prompt_token_ids == oracle.prompt_ids(clip)
        expected, expected_logits = oracle.answer(clip, MAX_TOKENS)
        assert tokens(output) == expected
        error = (logits(output) - expected_logits).abs().amax() / expected_logits.abs().amax()
        assert error < 1e-4
        different_answers.add(tuple(expected))
    # A model that said the same to everything would pass without having looked.
    assert len(different_answers) > NUM_CLIPS // 2


def test_the_second_question_on_a_clip_computes_only_the_text_after_it(ask, geometry, rng):
    clip = random_clip(rng)
    first, second = (ask([Asked(clip, q)])[0] for q in ("What is ahead?", "Who is crossing now?"))
    same = num_same_tokens(first, second)
    assert same >= geometry.num_pictures * geometry.tokens_per_picture
    assert first.num_cached_tokens == 0
    assert second.num_cached_tokens == same // BLOCK_SIZE * BLOCK_SIZE


def test_frames_shared_with_an_earlier_clip_are_cached_and_no_block_after_them(
    ask, engine, geometry, rng
):
    video_token = engine.llm_engine.model_config.hf_config.video_token_index
    for shared in range(1, 8):
        clip = random_clip(rng)
        other = np.concatenate([clip[:shared], 255 - clip[shared:]])
        (first,) = ask([Asked(clip, "What is ahead?")], max_tokens=1)
        (second,) = ask([Asked(other, "What is ahead?")], max_tokens=1)
        # The prompts' ids are all the same: only the frames behind them tell them apart.
        assert first.prompt_token_ids == second.prompt_token_ids
        same = first.prompt_token_ids.index(video_token) + shared * geometry.tokens_per_picture
        assert first.num_cached_tokens == 0
        assert second.num_cached_tokens == same // BLOCK_SIZE * BLOCK_SIZE, shared


def test_equal_frames_in_one_clip_share_their_encoding_and_change_no_token(ask, checkpoint, rng):
    still = np.repeat(random_clip(rng, num_frames=1), 8, axis=0)
    asked = Asked(still, "What is ahead?")
    expected, _ = Oracle(checkpoint).answer(asked, MAX_TOKENS)
    assert tokens(ask([asked])[0]) == expected


def test_a_clip_of_fewer_frames_is_answered_as_transformers_does(ask, checkpoint, rng):
    asked = Asked(random_clip(rng, num_frames=3), "What is ahead?")
    expected, _ = Oracle(checkpoint).answer(asked, MAX_TOKENS)
    assert tokens(ask([asked])[0]) == expected


def test_eight_at_once_say_what_each_says_alone(engine, ask, rng):
    asked = random_asked(rng, 8)
    together = [tokens(output) for output in ask(asked)]
    engine.reset_prefix_cache()
    assert [tokens(ask([a])[0]) for a in asked] == together


def test_a_video_that_is_only_an_id_is_refused_with_a_reason(engine):
    from vllm import SamplingParams

    prompt = {
        "prompt": "USER: <video>\nWhat? ASSISTANT:",
        "multi_modal_data": {"video": [None]},
        "multi_modal_uuids": {"video": ["camera-1"]},
    }
    with pytest.raises(ValueError, match="without frames"):
        engine.generate(prompt, SamplingParams(max_tokens=1), use_tqdm=False)
