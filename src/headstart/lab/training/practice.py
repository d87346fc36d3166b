"""What the eyes practise on: pictures and what is to be seen in them.

Streets far more crowded than any drive's, rendered the moment they are looked at: none comes
twice, and each shows several to name, where a second of a drive shows hardly more than one.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from headstart.lab.cache import event_pictures
from headstart.lab.split import Split
from headstart.lab.training.labels import Labels, label_frame, label_window
from headstart.lab.training.lessons import CachedLessons
from headstart.lab.world.drive import Drive, frame_times_us
from headstart.lab.world.painter import render
from headstart.lab.world.writing import write_crowded_stage
from headstart.media.clip import Clip
from headstart.media.events import SensorSize

_FIRST_SECONDS = 40


@dataclass(frozen=True, eq=False)
class Exercise:
    """One frame or the slices of one window, uint8 ``[pictures, height, width, 3]``, named."""

    pictures: NDArray[np.uint8]
    labels: Labels


def crowded(house: str, size: SensorSize, grid: int, number: int, seed: int) -> Exercise:
    """Exercise ``number`` of an endless book."""
    random = Random(f"{seed}/{number}")
    drive = Drive(random.choice(Split.TRAIN.value), size, write_crowded_stage)
    second = random.randrange(_FIRST_SECONDS)
    scene = drive.scene(frame_times_us(second)[-1])
    if house == "target":
        return Exercise(render(scene)[None], label_frame(scene, grid))
    slices = event_pictures(Clip(None, drive.events(second)))
    # All slices show one scene: with two of them there is time for twice as many windows.
    return Exercise(slices[sorted(random.sample(range(len(slices)), 2))], label_window(scene, grid))


def held_out(lessons: CachedLessons, grid: int, number: int) -> Exercise:
    """A clip of a drive as it is: its last frame, or its window."""
    seed, second = lessons.place(number)
    clip = lessons.cache.clip(seed, second)
    scene = Drive(seed, lessons.cache.recipe.size).scene(frame_times_us(second)[-1])
    if lessons.house == "target":
        return Exercise(clip.frames[-1:], label_frame(scene, grid))
    return Exercise(clip.slices, label_window(scene, grid))
