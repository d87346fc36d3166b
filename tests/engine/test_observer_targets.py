"""Targets that are vLLM's own, observed: their answers, and features for each part of a clip."""

import numpy as np
import pytest

from tests.models.chat_oracle import ChatOracle
from tests.models.chat_target import ENGINE, needs_torchvision, random_video
from tests.models.oracle import QUESTIONS
from tests.models.tiny_targets import SAVING

pytestmark = [pytest.mark.engine, pytest.mark.nightly, needs_torchvision]

NUM_FRAMES = 4
MAX_TOKENS = 8


@pytest.mark.parametrize(
    ("name", "num_parts", "marks", "is_timed"),
    [
        ("qwen3_vl", NUM_FRAMES // 2, [], True),
        ("llava_onevision", NUM_FRAMES, [False], False),  # a token ends its videos
        ("internvl", NUM_FRAMES, [], False),
        ("qwen2_5_vl", 1, [], True),
    ],
)
def test_a_chat_target_is_observed_part_by_part(name, num_parts, marks, is_timed, tmp_path, rng):
    from headstart import Clip
    from headstart_research.collect.observer import Observer

    SAVING[name](tmp_path)
    oracle = ChatOracle(tmp_path, is_timed=is_timed)
    with Observer(tmp_path, num_frames=NUM_FRAMES, vllm=ENGINE) as observer:
        seen = []
        for _ in range(3):
            clip = Clip(random_video(rng, NUM_FRAMES))
            observed = observer.observe(clip, QUESTIONS[:2], MAX_TOKENS)
            for said in observed.said:
                assert said.token_ids == oracle.answer(clip, said.question, MAX_TOKENS)
            assert [len(item) > 1 for item in observed.items] == [True] * num_parts + marks
            again = observer.observe(clip, QUESTIONS[:1], 1).items
            assert all(map(np.array_equal, again, observed.items))
            seen.append(observed.items)
    for items in zip(*(found[:num_parts] for found in seen), strict=True):
        assert len({item.tobytes() for item in items}) == len(seen)
