"""Teaching a model's eyes to name what they see, before it is taught to speak.

Out of answers alone a tower this small learns to see late: most of a sentence can be guessed from
the sentence. So it is first asked about every patch and about the street, through the same
projector whose tokens the language model will read, with heads that are thrown away afterwards.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from headstart.lab.training.course import Course
from headstart.lab.training.labels import PATCH, UNKNOWN, WHOLE
from headstart.lab.training.learner import Learner
from headstart.lab.training.lessons import CachedLessons
from headstart.lab.training.practice import Exercise, crowded, held_out
from headstart.lab.training.precision import fast

_NOBODY_WEIGHT = 0.2
_KIND = torch.tensor([_NOBODY_WEIGHT] + [1.0] * (PATCH["kind"] - 1))
_PATCH_WEIGHT = 3.0
"""Who stands where is said more often than what street it is, and harder to see."""


class Naming:
    """The eyes' lessons: crowded streets to learn from, held-out clips to be examined on."""

    def __init__(self, learner: Learner, unseen: CachedLessons, course: Course) -> None:
        self._learner, self._unseen, self._course = learner, unseen, course
        self.heads = nn.ModuleDict(
            {
                "whole": nn.Linear(learner.width, sum(WHOLE.values())),
                "patch": nn.Linear(learner.width, sum(PATCH.values())),
            }
        )

    def teach(self, step: int) -> float:
        """Add the gradient of one step's loss; return that loss."""
        course, learner = self._course, self._learner
        size = self._unseen.cache.recipe.size
        first = step * course.batch_size
        loss = self._loss(
            crowded(learner.name, size, learner.grid, number, course.seed)
            for number in range(first, first + course.batch_size)
        )
        loss.backward()
        return loss.item()

    @torch.no_grad()
    def examine(self) -> float:
        """The loss on always the same clips."""
        return self._loss(self._held_out(self._course.num_examined)).item()

    @torch.no_grad()
    def accuracies(self, num_clips: int) -> dict[str, float]:
        """The share of right names by question, on held-out clips."""
        right: dict[str, list[bool]] = {name: [] for name in (*WHOLE, *PATCH)}
        for exercise in self._held_out(num_clips):
            for name, scores, truth in self._asked([exercise]):
                known = truth != UNKNOWN
                if name == "kind":
                    known &= truth > 0  # most patches show nobody, which is easily said
                right[name] += (scores.argmax(1) == truth)[known].tolist()
        return {name: sum(each) / len(each) for name, each in right.items() if each}

    def _held_out(self, num: int) -> Iterator[Exercise]:
        for number in self._unseen.spread(num):
            yield held_out(self._unseen, self._learner.grid, number)

    def _loss(self, exercises: Iterable[Exercise]) -> torch.Tensor:
        losses = [
            cross_entropy(scores, truth, _KIND if name == "kind" else None)
            * (_PATCH_WEIGHT if name in PATCH else 1.0)
            for name, scores, truth in self._asked(exercises)
            if (truth != UNKNOWN).any()
        ]
        return torch.stack(losses).sum()

    def _asked(
        self, exercises: Iterable[Exercise]
    ) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Each question's name, scores ``[times asked, options]`` and the truth."""
        taken = list(exercises)
        with fast():
            tokens = self._learner.look(np.stack([each.pictures for each in taken])).float()
        whole_truth = torch.from_numpy(np.stack([each.labels.whole for each in taken], axis=1))
        patch_truth = torch.from_numpy(np.stack([each.labels.patches for each in taken], axis=1))
        # The class token, which stands before the patches, speaks for the whole.
        first = tokens.shape[1] - patch_truth.shape[2]
        whole = self.heads["whole"](tokens[:, first - 1]).split(list(WHOLE.values()), dim=-1)
        patch = self.heads["patch"](tokens[:, first:]).split(list(PATCH.values()), dim=-1)
        yield from zip(WHOLE, whole, whole_truth, strict=True)
        for name, scores, truth in zip(PATCH, patch, patch_truth, strict=True):
            yield name, scores.flatten(0, 1), truth.flatten()
