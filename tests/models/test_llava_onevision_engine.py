"""LLaVA-OneVision on a real vLLM engine, held against transformers."""

import pytest

from tests.models.chat_target import FramesAsItems, needs_torchvision

pytestmark = [pytest.mark.engine, needs_torchvision]


class TestLlavaOnevision(FramesAsItems):
    """A frame is an item, and so is the newline after the last."""

    name = "llava_onevision"
    frames_per_item = 1
