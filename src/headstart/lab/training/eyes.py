"""Teaching a model's eyes to name what they see, before it is taught to speak.

Out of answers alone a tower this small learns to see late: most of a sentence can be guessed from
the sentence. So it is first asked about every patch and about the street, through the same
projector whose tokens the language model will read, with heads that are thrown away afterwards.
"""

from collections.abc import Iterable, Iterator
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from headstart.lab.training.course import Course
from headstart.lab.training.labels import (
    PATCH,
    UNKNOWN,
    WHOLE,
    Labels,
    label_frame,
    label_window,
)
from headstart.lab.training.learner import Learner
from headstart.lab.training.lessons import CachedLessons, drawn
from headstart.lab.training.precision import fast
from headstart.lab.world.drive import Drive, frame_times_us

FRAMES_A_CLIP = 2
"""Frames of one clip in a step: reading a clip costs as much as looking at one."""
_NOBODY_WEIGHT = 0.2
_KIND = torch.tensor([_NOBODY_WEIGHT] + [1.0] * (PATCH["kind"] - 1))


class Naming:
    """The eyes' lessons: pictures of rendered drives and what is to be seen in them."""

    def __init__(
        self, learner: Learner, lessons: CachedLessons, held_out: CachedLessons, course: Course
    ) -> None:
        self._learner, self._course = learner, course
        self._lessons, self._held_out = lessons, held_out
        self.heads = nn.ModuleDict(
            {
                "whole": nn.Linear(learner.width, sum(WHOLE.values())),
                "patch": nn.Linear(learner.width, sum(PATCH.values())),
            }
        )

    def teach(self, step: int) -> float:
        """Add the gradient of one step's loss; return that loss."""
        course = self._course
        loss = self._loss(
            self._lessons, drawn(step, course.batch_size, len(self._lessons), course.seed)
        )
        loss.backward()
        return loss.item()

    @torch.no_grad()
    def examine(self) -> float:
        """The loss on always the same clips."""
        return self._loss(self._held_out, self._spread(self._course.num_examined)).item()

    @torch.no_grad()
    def accuracies(self, num_clips: int) -> dict[str, float]:
        """The share of right names by question, on held-out clips."""
        right: dict[str, list[bool]] = {name: [] for name in (*WHOLE, *PATCH)}
        for drawn_one in self._spread(num_clips):
            for name, scores, truth in self._asked(self._held_out, [drawn_one]):
                known = truth != UNKNOWN
                if name == "kind":
                    known &= truth > 0  # most patches show nobody, which is easily said
                right[name] += (scores.argmax(1) == truth)[known].tolist()
        return {name: sum(each) / len(each) for name, each in right.items() if each}

    def _spread(self, num: int) -> list[tuple[int, Random]]:
        return [(number, Random(number)) for number in self._held_out.spread(num)]

    def _loss(self, lessons: CachedLessons, taken: Iterable[tuple[int, Random]]) -> torch.Tensor:
        losses = [
            cross_entropy(scores, truth, _KIND if name == "kind" else None)
            for name, scores, truth in self._asked(lessons, taken)
            if (truth != UNKNOWN).any()
        ]
        return torch.stack(losses).sum()

    def _asked(
        self, lessons: CachedLessons, taken: Iterable[tuple[int, Random]]
    ) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Each question's name, scores ``[times asked, options]`` and the truth."""
        pictures, labels = self._pictures(lessons, taken)
        with fast():
            tokens = self._learner.look(pictures).float()
        whole_truth = torch.from_numpy(np.stack([each.whole for each in labels], axis=1))
        patch_truth = torch.from_numpy(np.stack([each.patches for each in labels], axis=1))
        # The class token, which stands before the patches, speaks for the whole.
        first = tokens.shape[1] - patch_truth.shape[2]
        whole = self.heads["whole"](tokens[:, first - 1]).split(list(WHOLE.values()), dim=-1)
        patch = self.heads["patch"](tokens[:, first:]).split(list(PATCH.values()), dim=-1)
        yield from zip(WHOLE, whole, whole_truth, strict=True)
        for name, scores, truth in zip(PATCH, patch, patch_truth, strict=True):
            yield name, scores.flatten(0, 1), truth.flatten()

    def _pictures(
        self, lessons: CachedLessons, taken: Iterable[tuple[int, Random]]
    ) -> tuple[NDArray[np.uint8], list[Labels]]:
        """What is looked at, as clips of a single frame or of a window's slices."""
        pictures: list[NDArray[np.uint8]] = []
        labels: list[Labels] = []
        for number, random in taken:
            seed, second = lessons.place(number)
            clip = lessons.cache.clip(seed, second)
            drive, times = Drive(seed, lessons.cache.recipe.size), frame_times_us(second)
            if lessons.house == "drafter":
                pictures.append(clip.slices)
                labels.append(label_window(drive.scene(times[-1]), self._learner.grid))
                continue
            for each in random.sample(range(len(times)), FRAMES_A_CLIP):
                pictures.append(clip.frames[each][None])
                labels.append(label_frame(drive.scene(times[each]), self._learner.grid))
        return np.stack(pictures), labels
