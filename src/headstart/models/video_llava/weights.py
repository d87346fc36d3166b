"""Names of Video-LLaVA's weights: every layout they were saved in, and one canonical one.

Three layouts are in the world: the published checkpoint (``video_tower.vision_model.``,
``language_model.model.``), what transformers 5 writes (the same without
``vision_model.``), and transformers' module names (``model.`` before everything). All three
map onto the published one, which is also how vLLM's parts are named.
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

# The target is asked about video only: the twin tower for still images stays on disk.
UNUSED_NAMES = re.compile(r"^image_tower\.")


def canonical_name(name: str) -> str:
    """The published name of a weight saved under any known layout."""
    for pattern, replacement in CANONICAL_NAMES.items():
        name = pattern.sub(replacement, name)
    return name


def expected_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Canonical name and shape of every weight of a complete checkpoint.

    transformers' own class is the authority; it is built on the meta device, which takes
    no memory however large the model is.
    """
    import torch
    from transformers import VideoLlavaForConditionalGeneration

    with torch.device("meta"):
        model = VideoLlavaForConditionalGeneration(config)
    return {
        canonical_name(name): tuple(tensor.shape) for name, tensor in model.state_dict().items()
    }
