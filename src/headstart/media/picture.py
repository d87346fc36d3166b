"""Still pictures as arrays."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from headstart.errors import MediaError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


def read_picture(path: str | Path) -> NDArray[np.uint8]:
    """A picture as a viewer shows it, uint8 [height, width, 3], RGB."""
    try:
        with Image.open(path) as opened:
            return np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise MediaError(f"cannot read the picture {path}: {error}; give a JPEG or PNG") from error
