"""The frames and tokens of a Video-LLaVA clip, from the model's config."""

from typing import Any

from headstart.errors import ModelConfigError
from headstart.models.geometry import PictureGeometry


def video_geometry(config: Any) -> PictureGeometry:
    """The geometry of a clip for a ``VideoLlavaConfig``."""
    if not isinstance(config.vision_feature_layer, int):
        raise ModelConfigError(
            f"vision_feature_layer is {config.vision_feature_layer!r}; Video-LLaVA reads one"
            " layer. Set it to a single integer in config.json (the published value is -2)."
        )
    one = PictureGeometry.of_tower(config.vision_config, num_pictures=1)
    num_frames, rest = divmod(config.video_seq_length, one.tokens_per_picture)
    if rest or not num_frames:
        raise ModelConfigError(
            f"video_seq_length {config.video_seq_length} is not a whole number of frames of"
            f" {one.tokens_per_picture} tokens. Correct video_seq_length in config.json."
        )
    return PictureGeometry.of_tower(config.vision_config, num_frames)
