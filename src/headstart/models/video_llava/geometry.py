"""How many tokens a Video-LLaVA frame and clip take, read from the model's own config."""

from dataclasses import dataclass
from typing import Any, Self

from headstart.errors import ModelConfigError


@dataclass(frozen=True)
class VideoGeometry:
    """The shape of one video in the target's prompt."""

    image_size: int
    tokens_per_frame: int
    num_frames: int

    @classmethod
    def from_config(cls, config: Any) -> Self:
        """Read a ``VideoLlavaConfig``; the video tower keeps its class token, so it counts."""
        vision = config.vision_config
        if not isinstance(config.vision_feature_layer, int):
            raise ModelConfigError(
                f"vision_feature_layer is {config.vision_feature_layer!r}; Video-LLaVA reads one"
                " layer. Set it to a single integer in config.json (the published value is -2)."
            )
        if vision.image_size % vision.patch_size:
            raise ModelConfigError(
                f"image_size {vision.image_size} is not a multiple of patch_size"
                f" {vision.patch_size}. Correct vision_config in config.json."
            )
        tokens_per_frame = (vision.image_size // vision.patch_size) ** 2 + 1
        num_frames, rest = divmod(config.video_seq_length, tokens_per_frame)
        if rest or not num_frames:
            raise ModelConfigError(
                f"video_seq_length {config.video_seq_length} is not a whole number of frames of"
                f" {tokens_per_frame} tokens. Correct video_seq_length in config.json."
            )
        return cls(vision.image_size, tokens_per_frame, num_frames)

    @property
    def num_tokens(self) -> int:
        """Tokens of a full clip."""
        return self.num_frames * self.tokens_per_frame
