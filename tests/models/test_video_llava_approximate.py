"""Video-LLaVA shown a part of its patches, on a real engine, held against transformers' parts."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from headstart import Approximate, ApproximateFrames, Headstart, Manner, Sources, Video
from headstart.media.approximate import PatchPlan
from headstart.media.clip import Clip
from headstart.media.patches import PatchGrid
from tests.live.camera import forget_prefixes
from tests.models.oracle import BLOCK_SIZE, Asked, Oracle, random_asked, random_clip

pytestmark = pytest.mark.engine

MAX_TOKENS = 12
SIDE, TOKENS = 4, 17
"""Of the tiny target's frames."""


@dataclass(frozen=True)
class Drawn:
    """Any patches of any frames, by a seed."""

    seed: int
    share: float = 0.4

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        assert (grid.rows, grid.columns, grid.is_square) == (SIDE, SIDE, True)
        rng = np.random.default_rng(self.seed)
        kept = rng.random((len(clip.video), SIDE, SIDE)) < self.share
        kept[rng.integers(len(kept))] = False  # a frame of which nothing is shown
        kept[-1, 0, 0] = True
        return PatchPlan.of(kept)


@pytest.fixture(scope="module")
def approximate(tiny_target):
    """As `headstart`, for approximate answers; its default is half of the patches."""
    with Headstart(
        tiny_target,
        sources=Sources(abstain=False),
        max_draft_tokens=16,
        manner=Manner(approximate=Approximate(0.5)),
        vllm={"dtype": "float32", "enforce_eager": True, "block_size": 32},
    ) as running:
        yield running


@pytest.fixture
def session(approximate):
    """Asks in a manner of its own, beginning without anything cached."""
    assert forget_prefixes(approximate)

    def ask(way, asked: Asked, max_tokens: int = MAX_TOKENS):
        manner = Manner(approximate=way)
        camera = approximate.session("front camera", manner=manner)
        video = Video.from_frames(asked.frames, fps=8)
        return camera.ask(video, asked.question, max_tokens=max_tokens)

    return ask


def parts_answer(oracle: Oracle, asked: Asked, plan: PatchPlan, max_tokens: int) -> list[int]:
    """transformers' language model over the embeddings that are kept, at their whole positions."""
    model, ids = oracle.model, oracle.prompt_ids(asked)
    pixels = oracle.image_processor(images=list(asked.frames), return_tensors="pt")
    with torch.no_grad():
        features = model.model.get_video_features(pixels["pixel_values_images"][None])
        embedded = model.get_input_embeddings()(torch.tensor(ids))
        start = ids.index(model.config.video_token_index)
        num_frames = len(asked.frames)
        embedded[start : start + num_frames * TOKENS] = features.pooler_output.reshape(
            -1, embedded.shape[-1]
        )
        shown = np.zeros((num_frames, TOKENS), dtype=bool)
        shown[plan.steps, 0] = True
        shown[plan.steps, 1:] = plan.kept.reshape(len(plan.steps), -1)
        mask = np.ones(len(ids), dtype=bool)
        mask[start : start + num_frames * TOKENS] = shown.reshape(-1)
        positions = torch.from_numpy(np.flatnonzero(mask))[None]
        inputs, said = embedded[torch.from_numpy(mask)][None], []
        while len(said) < max_tokens:
            hidden = model.model.language_model(
                inputs_embeds=inputs,
                position_ids=positions,
                # Without a mask transformers takes gaps in the positions for several sequences.
                attention_mask=torch.ones_like(positions),
                use_cache=False,
            ).last_hidden_state
            token = model.lm_head(hidden[0, -1]).argmax()
            said.append(int(token))
            if said[-1] == oracle.tokenizer.eos_token_id:
                break
            inputs = torch.cat([inputs, model.get_input_embeddings()(token)[None, None]], dim=1)
            positions = torch.cat([positions, positions[:, -1:] + 1], dim=1)
    return said


def plan_of(approximate, way, asked: Asked) -> PatchPlan:
    clip = Clip(Video.from_frames(asked.frames, fps=8))
    return approximate.target.view.plan(clip, way)


def test_tokens_are_those_of_the_language_model_over_the_kept_embeddings(
    approximate, session, oracle, rng
):
    others = 0
    for number, asked in enumerate(random_asked(rng, 6)):
        ways = (Drawn(number), Approximate(0.3), ApproximateFrames(3))
        for way in ways:
            plan = plan_of(approximate, way, asked)
            answer = session(way, asked)
            assert list(answer.token_ids) == parts_answer(oracle, asked, plan, MAX_TOKENS)
            assert answer.approximate == plan.omission
            num_text = len(oracle.prompt_ids(asked)) - 8 * TOKENS
            assert answer.num_prompt_tokens == num_text + plan.kept.sum() + len(plan.steps)
            others += list(answer.token_ids) != oracle.answer(asked, MAX_TOKENS)[0]
    assert others > 6  # what is left out matters to this model


def test_an_engine_for_approximate_answers_still_gives_exact_ones(session, oracle, rng):
    for asked in random_asked(rng, 4):
        answer = session(None, asked)
        assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
        assert answer.approximate is None


def test_a_plan_that_keeps_everything_gives_the_exact_answer(session, oracle, rng):
    (asked,) = random_asked(rng, 1)
    answer = session(ApproximateFrames(8), asked)
    assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
    assert answer.approximate.num_dropped_patches == 0


def test_the_same_plan_is_found_in_the_cache_and_another_plan_never(session, rng):
    clip = random_clip(rng)
    first = session(Drawn(1), Asked(clip, "What is ahead?"))
    again = session(Drawn(1), Asked(clip, "What is ahead?"))
    assert first.num_cached_tokens == 0
    assert again.num_cached_tokens >= (again.num_prompt_tokens - 1) // BLOCK_SIZE * BLOCK_SIZE > 0
    assert again.token_ids == first.token_ids
    # As many tokens of the same frames, in the same order: only the plan differs.
    for way in (Drawn(2), ApproximateFrames(8), None):
        other = session(way, Asked(clip, "What is ahead?"))
        assert other.num_cached_tokens == 0, way


def test_plans_that_begin_alike_share_what_they_have_in_common(session, rng):
    clip = random_clip(rng)
    first = session(ApproximateFrames(8), Asked(clip, "What is ahead?"), 1)

    @dataclass(frozen=True)
    class LastFrameInPart:
        def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
            kept = np.ones((8, SIDE, SIDE), dtype=bool)
            kept[-1, 1:] = False
            return PatchPlan.of(kept)

    second = session(LastFrameInPart(), Asked(clip, "What is ahead?"), 1)
    assert first.num_cached_tokens == 0
    assert second.num_cached_tokens >= 6 * TOKENS // BLOCK_SIZE * BLOCK_SIZE


def test_what_was_said_before_is_drafted_in_approximate_answers_too(session, oracle, rng):
    (asked,) = random_asked(rng, 1)
    first, second = session(Approximate(0.3), asked), session(Approximate(0.3), asked)
    assert second.num_accepted_tokens > 0
    assert first.token_ids == second.token_ids
