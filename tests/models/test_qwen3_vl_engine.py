"""Qwen3-VL on a real vLLM engine: pairs of frames as items, held against transformers."""

import json
from typing import ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headstart import Clip, RequestOptions, Video
from tests.models.chat_target import (
    ENGINE,
    MAX_TOKENS,
    FramesAsItems,
    needs_torchvision,
    random_video,
)
from tests.models.oracle import QUESTIONS, random_clip
from tests.models.tiny_targets import TEXT_SIZE

pytestmark = [pytest.mark.engine, needs_torchvision]


class TestQwen3Vl(FramesAsItems):
    """A pair of frames is an item."""

    name = "qwen3_vl"
    frames_per_item = 2
    is_timed = True
    engine: ClassVar = {**ENGINE, "enable_lora": True, "max_lora_rank": 8}

    @pytest.mark.parametrize("size", [(64, 96), (96, 128), (240, 320), (33, 300)])
    def test_frames_are_scaled_as_those_of_the_whole_video(self, target, oracle, rng, size):
        frames = random_clip(rng, 8)
        rows, columns = (np.arange(size[i]) * frames.shape[i + 1] // size[i] for i in range(2))
        video = Video(frames[:, rows][:, :, columns], np.arange(8, dtype=np.int64) * 500_000)
        expected = oracle.answer(Clip(video), QUESTIONS[0], MAX_TOKENS)
        assert target.whole(video, QUESTIONS[0]) == expected
        answer = target.ours.ask(video, QUESTIONS[0], max_tokens=MAX_TOKENS)
        assert answer.token_ids == expected
        assert len(self.item_starts(target, video)) == 4

    def test_the_time_of_frames_reaches_the_model(self, target, oracle, rng):
        frames = random_clip(rng, 4)
        answers = set()
        for times_us in ([0, 1, 2, 3], [0, 500_000, 9_000_000, 9_100_000]):
            video = Video(frames, np.array(times_us, dtype=np.int64))
            expected = oracle.answer(Clip(video), QUESTIONS[0], MAX_TOKENS)
            answer = target.ours.ask(video, QUESTIONS[0], max_tokens=MAX_TOKENS)
            assert answer.token_ids == expected
            answers.add(expected)
        assert len(answers) == 2

    def test_an_adapter_speaks_the_same_with_drafts(self, target, rng, tmp_path):
        save_adapter(tmp_path)
        video, answers = random_video(rng), set()
        for lora in (None, tmp_path):
            options = RequestOptions(lora=lora)
            said = {
                headstart.session(f"adapter {lora}", options=options)
                .ask(video, QUESTIONS[0], max_tokens=MAX_TOKENS)
                .token_ids
                for headstart in (target.bare, target.ours, target.ours)
            }
            assert len(said) == 1
            answers |= said
        assert len(answers) == 2


def save_adapter(directory) -> None:
    """A random LoRA adapter of the attention's outputs, in the files of peft."""
    rank, before = 8, "base_model.model.model.language_model.layers"
    generator = torch.Generator().manual_seed(2)
    weights = {
        f"{before}.{layer}.self_attn.o_proj.lora_{side}.weight": torch.randn(
            shape, generator=generator
        )
        for layer in range(2)
        for side, shape in (("A", (rank, TEXT_SIZE)), ("B", (TEXT_SIZE, rank)))
    }
    save_file(weights, directory / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": rank,
        "target_modules": ["o_proj"],
        "bias": "none",
    }
    (directory / "adapter_config.json").write_text(json.dumps(config))
