"""Qwen2.5-VL on a real vLLM engine, held against transformers."""

import pytest

from tests.models.chat_target import AnyChatTarget, needs_torchvision

pytestmark = [pytest.mark.engine, needs_torchvision]


class TestQwen25Vl(AnyChatTarget):
    """Clips as wholes: see docs/guides/model.md for why."""

    name = "qwen2_5_vl"
    is_timed = True
    # After a video, transformers 5.19 goes on from the video's height or width, and vLLM from its
    # largest position. In longer videos that is a time, and the two say other words.
    max_frames = 4
