"""Qwen3-VL shown a part of its patches, on a real engine, held against transformers' masks."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from headstart import Approximate, ApproximateFrames, Clip, Headstart, Manner, Sources, Video
from headstart.media.approximate import PatchPlan
from headstart.media.patches import PatchGrid
from tests.live.camera import forget_prefixes
from tests.models.chat_oracle import ChatOracle
from tests.models.chat_target import ENGINE, needs_torchvision
from tests.models.oracle import BLOCK_SIZE, QUESTIONS
from tests.models.tiny_targets import SAVING

pytestmark = [pytest.mark.engine, needs_torchvision]

MAX_TOKENS = 10
HEIGHT, WIDTH, SIDE = 64, 128, 32
ROWS, COLUMNS = HEIGHT // SIDE, WIDTH // SIDE
NUM_PAIRS = 4


@dataclass(frozen=True)
class Drawn:
    """Any patches of every pair, by a seed."""

    seed: int
    share: float = 0.4

    def plan(self, clip: Clip, grid: PatchGrid) -> PatchPlan:
        assert grid == PatchGrid(ROWS, COLUMNS, frames_per_step=2)
        rng = np.random.default_rng(self.seed)
        kept = rng.random((NUM_PAIRS, ROWS, COLUMNS)) < self.share
        kept[:, 0, 0] = True
        return PatchPlan.of(kept)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("qwen3_vl") / "target"
    SAVING["qwen3_vl"](directory)
    return directory


@pytest.fixture(scope="module")
def oracle(checkpoint):
    return ChatOracle(checkpoint, is_timed=True)


@pytest.fixture(scope="module")
def approximate(checkpoint):
    with Headstart(
        checkpoint,
        sources=Sources(abstain=False),
        max_draft_tokens=8,
        num_frames=2 * NUM_PAIRS,
        manner=Manner(approximate=Approximate(0.5)),
        vllm=ENGINE,
    ) as running:
        yield running


def street(rng: np.random.Generator) -> Video:
    """Frames that vLLM scales neither up nor down; blocks of them change."""
    coarse = rng.integers(0, 256, (2 * NUM_PAIRS, 4, 8, 3), dtype=np.uint8)
    frames = np.repeat(np.repeat(coarse, HEIGHT // 4, axis=1), WIDTH // 8, axis=2)
    return Video(frames, np.arange(2 * NUM_PAIRS, dtype=np.int64) * 125_000)


def ask(approximate, way, video: Video, question: str, max_tokens: int = MAX_TOKENS):
    camera = approximate.session("front camera", manner=Manner(approximate=way))
    return camera.ask(video, question, max_tokens=max_tokens)


def masked_answer(oracle: ChatOracle, video: Video, question: str, plan: PatchPlan) -> list[int]:
    """transformers' whole prompt at its own positions, with the patches left out never read."""
    inputs = oracle.inputs(Clip(video), question)
    ids, model = inputs["input_ids"], oracle.model
    grids = inputs["video_grid_thw"].tolist()
    assert grids == [[NUM_PAIRS, 2 * ROWS, 2 * COLUMNS]]  # frames were not scaled
    read = torch.ones_like(ids)
    kept = np.zeros((NUM_PAIRS, ROWS, COLUMNS), dtype=np.int64)
    kept[plan.steps] = plan.kept
    read[ids == model.config.video_token_id] = torch.from_numpy(kept.reshape(-1))
    types = (
        {"mm_token_type_ids": inputs["mm_token_type_ids"]} if "mm_token_type_ids" in inputs else {}
    )
    positions, _ = model.model.get_rope_index(
        input_ids=ids,
        video_grid_thw=inputs["video_grid_thw"],
        attention_mask=torch.ones_like(ids),
        **types,
    )
    said: list[int] = []
    while len(said) < MAX_TOKENS:
        if types:
            types["mm_token_type_ids"] = torch.nn.functional.pad(
                inputs["mm_token_type_ids"], (0, len(said))
            )
        with torch.no_grad():
            logits = model(
                input_ids=ids,
                attention_mask=read,
                position_ids=positions,
                pixel_values_videos=inputs["pixel_values_videos"],
                video_grid_thw=inputs["video_grid_thw"],
                use_cache=False,
                **types,
            ).logits
        said.append(int(logits[0, -1].argmax()))
        # Of a placeholder, which random weights may say too, transformers would want the pixels.
        if said[-1] in (model.generation_config.eos_token_id, model.config.video_token_id):
            break
        ids = torch.cat([ids, torch.tensor([[said[-1]]])], dim=1)
        read = torch.nn.functional.pad(read, (0, 1), value=1)
        following = positions[..., -1:].max() + 1
        positions = torch.cat([positions, following.expand(3, 1, 1)], dim=-1)
    return said


def test_tokens_are_those_of_the_model_that_does_not_read_what_is_left_out(
    approximate, oracle, rng
):
    others = num_compared = 0
    for number in range(6):
        video, question = street(rng), QUESTIONS[number % len(QUESTIONS)]
        for way in (Drawn(number), Drawn(number, share=0.8)):
            plan = approximate.target.view.plan(Clip(video), way)
            answer = ask(approximate, way, video, question)
            expected = masked_answer(oracle, video, question, plan)
            assert list(answer.token_ids[: len(expected)]) == expected
            num_compared += len(expected)
            assert answer.approximate == plan.omission
            whole = oracle.inputs(Clip(video), question)["input_ids"].shape[1]
            assert answer.num_prompt_tokens == whole - plan.omission.num_dropped_patches
            others += answer.token_ids != oracle.answer(Clip(video), question, MAX_TOKENS)
    assert others > 4
    assert num_compared > 60


def test_an_engine_for_approximate_answers_still_gives_exact_ones(approximate, oracle, rng):
    video = street(rng)
    expected = oracle.answer(Clip(video), QUESTIONS[0], MAX_TOKENS)
    for way in (None, ApproximateFrames(NUM_PAIRS)):
        assert ask(approximate, way, video, QUESTIONS[0]).token_ids == expected


def test_pairs_that_are_not_shown_are_as_those_of_a_shorter_clip(approximate, oracle, rng):
    video = street(rng)
    plan = approximate.target.view.plan(Clip(video), ApproximateFrames(2))
    chosen = np.concatenate([[2 * step, 2 * step + 1] for step in plan.steps])
    assert plan.steps[0] == 0  # times count from the first frame shown
    shorter = Clip(Video(video.frames[chosen], video.times_us[chosen]))
    answer = ask(approximate, ApproximateFrames(2), video, QUESTIONS[0])
    assert answer.token_ids == oracle.answer(shorter, QUESTIONS[0], MAX_TOKENS)
    assert answer.approximate.num_dropped_steps == 2


def test_the_same_plan_is_found_in_the_cache_and_another_plan_never(approximate, rng):
    video = street(rng)
    assert forget_prefixes(approximate)
    first = ask(approximate, Drawn(1), video, QUESTIONS[0])
    again = ask(approximate, Drawn(1), video, QUESTIONS[0])
    assert first.num_cached_tokens == 0
    assert again.num_cached_tokens == (again.num_prompt_tokens - 1) // BLOCK_SIZE * BLOCK_SIZE > 0
    assert again.token_ids == first.token_ids
    for way in (Drawn(2), ApproximateFrames(NUM_PAIRS), None):
        assert ask(approximate, way, video, QUESTIONS[0]).num_cached_tokens == 0, way


def test_frames_that_vllm_scales_down_are_shown_in_part_as_well(approximate, rng):
    large = street(rng)
    large = Video(large.frames.repeat(3, axis=1).repeat(3, axis=2), large.times_us)
    whole = ask(approximate, None, large, QUESTIONS[0])
    answer = ask(approximate, Approximate(0.5), large, QUESTIONS[0])
    assert answer.num_prompt_tokens < whole.num_prompt_tokens
    assert answer.approximate.dropped_share >= 0.5
