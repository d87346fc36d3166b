"""What cameras of a load see: held-out drives of the lab, as JPEGs that are drawn once."""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import PIL.Image

from headstart_lab.world.drive import SECOND_US
from rig.rough_camera import RoughCamera

JPEG_QUALITY = 90

Pictures = tuple[bytes, ...]
"""The frames of a window, in order."""


@dataclass(frozen=True)
class Film:
    """The windows of one camera, each of which shows a second of its drive.

    A window that lasts longer shows its second slowly: the lab's target was trained on clips of a
    second, and frames that are further apart would be no clips that it knows.
    """

    windows: tuple[Pictures, ...]

    @classmethod
    def of_drive(cls, number: int, num_windows: int, num_frames: int) -> "Film":
        """The film of a drive; its number is that of a held-out seed."""
        camera = RoughCamera(number)

        def window(second: int) -> Iterator[bytes]:
            for slot in range(num_frames):
                frame = camera.frame(second * SECOND_US + slot * SECOND_US // num_frames)
                content = io.BytesIO()
                PIL.Image.fromarray(frame).save(content, "JPEG", quality=JPEG_QUALITY)
                yield content.getvalue()

        return cls(tuple(tuple(window(second)) for second in range(num_windows)))
