"""A drawn street of a few seconds, for trying video and events without the lab's world."""

import numpy as np

from headstart.media.video import Video

_SKY, _ROAD, _LINE = (150, 190, 230), (70, 70, 75), (235, 235, 235)
_CAR, _WALKER = (190, 40, 40), (30, 60, 140)


def street_video(
    num_frames: int = 50, width: int = 320, height: int = 240, fps: float = 25.0
) -> Video:
    """A red car crossing from the left, a person walking the other way, a dashed line."""
    frames = np.empty((num_frames, height, width, 3), dtype=np.uint8)
    horizon = height // 2
    frames[:, :horizon] = _SKY
    frames[:, horizon:] = _ROAD
    for number, frame in enumerate(frames):
        share = number / max(1, num_frames - 1)
        for dash in range(-int(share * 80) % 40, width, 40):
            frame[height * 3 // 4 : height * 3 // 4 + 4, dash : dash + 20] = _LINE
        car = int(share * (width - 80))
        frame[horizon + 10 : horizon + 45, car : car + 80] = _CAR
        walker = int((1 - share) * (width - 12))
        frame[horizon - 20 : horizon + 12, walker : walker + 12] = _WALKER
    return Video.from_frames(frames, fps)
