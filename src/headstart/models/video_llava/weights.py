"""The names of Video-LLaVA's weights, in every layout in use.

There are three: the published checkpoint (``video_tower.vision_model.`` and
``language_model.model.``), what transformers 5 writes (the same without ``vision_model.``), and
transformers' module names (``model.`` before everything). All are mapped to the published one,
which vLLM's modules have too.
"""

import re
from typing import Any

# Applied in order, each at most once a name.
CANONICAL_NAMES: dict[re.Pattern[str], str] = {
    re.compile(r"^(?:model\.)?(image|video)_tower\.(?:vision_model\.)?"): (
        r"\1_tower.vision_model."
    ),
    re.compile(r"^model\.multi_modal_projector\."): "multi_modal_projector.",
    re.compile(r"^model\.language_model\."): "language_model.model.",
    re.compile(r"^lm_head\."): "language_model.lm_head.",
}

# The model is asked about video only, so the tower for still images is not loaded.
UNUSED_NAMES = re.compile(r"^image_tower\.")


def canonical_name(name: str) -> str:
    """The published name of a weight saved under any known layout."""
    for pattern, replacement in CANONICAL_NAMES.items():
        name = pattern.sub(replacement, name)
    return name


def expected_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Canonical name and shape of every weight of a complete checkpoint.

    They are those of transformers' own class, built on the meta device, which takes no memory.
    """
    import torch
    from transformers import VideoLlavaForConditionalGeneration

    with torch.device("meta"):
        model = VideoLlavaForConditionalGeneration(config)
    return {
        canonical_name(name): tuple(tensor.shape) for name, tensor in model.state_dict().items()
    }
