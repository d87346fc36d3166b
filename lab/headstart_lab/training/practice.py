"""The examples of the vision task: pictures and their labels.

Training uses streets far more crowded than those of a drive, rendered when they are needed: none is
repeated, and each shows several road users, where a second of a drive shows hardly more than one.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from headstart.media.clip import Clip
from headstart.media.events import SensorSize
from headstart_lab.cache import event_pictures
from headstart_lab.split import Split
from headstart_lab.training.labels import Labels, label_frame, label_window
from headstart_lab.training.lessons import CachedLessons
from headstart_lab.world.drive import Drive, frame_times_us
from headstart_lab.world.painter import render
from headstart_lab.world.writing import write_crowded_stage

_FIRST_SECONDS = 40


@dataclass(frozen=True, eq=False)
class Exercise:
    """One frame or the slices of one window, uint8 ``[pictures, height, width, 3]``, and labels."""

    pictures: NDArray[np.uint8]
    labels: Labels


def crowded(model: str, size: SensorSize, grid: int, number: int, seed: int) -> Exercise:
    """Training exercise ``number``; there is no last one."""
    random = Random(f"{seed}/{number}")
    drive = Drive(random.choice(Split.TRAIN.value), size, write_crowded_stage)
    second = random.randrange(_FIRST_SECONDS)
    scene = drive.scene(frame_times_us(second)[-1])
    if model == "target":
        return Exercise(render(scene)[None], label_frame(scene, grid))
    slices = event_pictures(Clip(None, drive.events(second)))
    # All slices show one scene, so two of them are enough, and a step takes twice as many windows.
    return Exercise(slices[sorted(random.sample(range(len(slices)), 2))], label_window(scene, grid))


def held_out(lessons: CachedLessons, grid: int, number: int) -> Exercise:
    """A held-out exercise: the last frame of a cached clip, or its window of events."""
    seed, second = lessons.place(number)
    clip = lessons.cache.clip(seed, second)
    scene = Drive(seed, lessons.cache.recipe.size).scene(frame_times_us(second)[-1])
    if lessons.model == "target":
        return Exercise(clip.frames[-1:], label_frame(scene, grid))
    return Exercise(clip.slices, label_window(scene, grid))
