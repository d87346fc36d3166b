"""InternVL3 on a real vLLM engine, held against transformers."""

import pytest

from tests.models.chat_target import FramesAsItems, needs_torchvision

pytestmark = [pytest.mark.engine, needs_torchvision]


class TestInternVl(FramesAsItems):
    """A frame is an item."""

    name = "internvl"
    frames_per_item = 1
