"""The slices and tokens of a window of events, from the model's config."""

from typing import Any

from headstart.errors import ModelConfigError
from headstart.models.geometry import PictureGeometry


def event_geometry(config: Any) -> PictureGeometry:
    """The geometry of a window for an `EventChatConfig`."""
    if getattr(config, "use_event_qformer", False):
        raise ModelConfigError(
            "use_event_qformer is set: headstart has the published EventGPT, which pools its"
            " features instead. Use a checkpoint without it."
        )
    return PictureGeometry.of_tower(config.vision_config, config.num_slices)


def num_window_tokens(geometry: PictureGeometry, num_slices: int) -> int:
    """The tokens of a window after pooling: one for each slice and each place in the picture."""
    return num_slices + geometry.tokens_per_picture
