"""Pictures to pixel values, the same ones as the image processors of both models give at inference.

The processors only scale and normalise a picture that has the tower's own size; this module does so
for many pictures at once. Pictures of other sizes go through the processor.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import CLIPImageProcessorPil, VideoLlavaImageProcessor
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

_MEAN = torch.tensor(OPENAI_CLIP_MEAN).view(3, 1, 1)
_STD = torch.tensor(OPENAI_CLIP_STD).view(3, 1, 1)


def frame_processor(image_size: int) -> Any:
    """The target's image processor, which is saved with its checkpoint."""
    return VideoLlavaImageProcessor(**_sizes(image_size))


def slice_processor(image_size: int) -> Any:
    """The drafter's image processor, which vLLM builds from the drafter's config."""
    return CLIPImageProcessorPil(**_sizes(image_size))


def pixels(pictures: NDArray[np.uint8], image_size: int, processor: Any) -> torch.Tensor:
    """uint8 ``[pictures, height, width, 3]`` to float32 ``[pictures, 3, size, size]``."""
    if pictures.shape[1:3] == (image_size, image_size):
        values = torch.from_numpy(pictures).permute(0, 3, 1, 2).float().div_(255)
        return values.sub_(_MEAN).div_(_STD)
    (values,) = processor(images=list(pictures), return_tensors="pt").values()
    return torch.as_tensor(values, dtype=torch.float32)


def _sizes(image_size: int) -> dict[str, Any]:
    return {
        "size": {"shortest_edge": image_size},
        "crop_size": {"height": image_size, "width": image_size},
    }
