"""How many pictures and tokens a clip has in a model's prompt. Imports no engine."""

from dataclasses import dataclass
from typing import Any, Self

from headstart.errors import ModelConfigError


@dataclass(frozen=True)
class PictureGeometry:
    """The number and size of a clip's pictures, and the tokens of each."""

    image_size: int
    tokens_per_picture: int
    num_pictures: int

    @classmethod
    def of_tower(cls, vision_config: Any, num_pictures: int) -> Self:
        """The geometry of a CLIP tower whose class token is kept."""
        size, patch = vision_config.image_size, vision_config.patch_size
        if size % patch:
            raise ModelConfigError(
                f"image_size {size} is not a multiple of patch_size {patch}."
                " Correct vision_config in config.json."
            )
        return cls(size, (size // patch) ** 2 + 1, num_pictures)
