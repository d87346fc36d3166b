"""The first training task: the vision tower and the projector classify what a picture shows.

Trained on answers alone, a tower this small learns slowly, because the language model can guess
most of a sentence from its beginning. So linear heads first classify every patch and the whole
street from the projector's tokens, which the language model reads later. The heads are then
discarded.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from headstart_lab.training.labels import PATCH, UNKNOWN, WHOLE
from headstart_lab.training.learner import Learner
from headstart_lab.training.lessons import CachedLessons
from headstart_lab.training.practice import Exercise, crowded, held_out
from headstart_lab.training.train_config import TrainConfig
from headstart_research.training.precision import fast

_NOBODY_WEIGHT = 0.2
_KIND = torch.tensor([_NOBODY_WEIGHT] + [1.0] * (PATCH["kind"] - 1))
_PATCH_WEIGHT = 3.0
"""Road users are mentioned more often than the street, and are harder to recognise."""


class VisionTask:
    """Trains on crowded streets, rendered on the fly; measures on held-out clips."""

    def __init__(self, learner: Learner, unseen: CachedLessons, config: TrainConfig) -> None:
        self._learner, self._unseen, self._config = learner, unseen, config
        self.heads = nn.ModuleDict(
            {
                "whole": nn.Linear(learner.width, sum(WHOLE.values())),
                "patch": nn.Linear(learner.width, sum(PATCH.values())),
            }
        )

    def training_step(self, step: int) -> float:
        """Compute the loss of one step, add its gradient, and return it."""
        config, learner = self._config, self._learner
        size = self._unseen.cache.recipe.size
        first = step * config.batch_size
        loss = self._loss(
            crowded(learner.name, size, learner.grid, number, config.seed)
            for number in range(first, first + config.batch_size)
        )
        loss.backward()
        return loss.item()

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """The loss on a fixed set of held-out clips."""
        return self._loss(self._held_out(self._config.num_examined)).item()

    @torch.no_grad()
    def accuracies(self, num_clips: int) -> dict[str, float]:
        """The accuracy of each classification, on held-out clips."""
        right: dict[str, list[bool]] = {name: [] for name in (*WHOLE, *PATCH)}
        for exercise in self._held_out(num_clips):
            for name, scores, truth in self._classified([exercise]):
                known = truth != UNKNOWN
                if name == "kind":
                    known &= truth > 0  # most patches show no road user, which is easy to tell
                right[name] += (scores.argmax(1) == truth)[known].tolist()
        return {name: sum(each) / len(each) for name, each in right.items() if each}

    def _held_out(self, num: int) -> Iterator[Exercise]:
        for number in self._unseen.spread(num):
            yield held_out(self._unseen, self._learner.grid, number)

    def _loss(self, exercises: Iterable[Exercise]) -> torch.Tensor:
        losses = [
            cross_entropy(scores, truth, _KIND if name == "kind" else None)
            * (_PATCH_WEIGHT if name in PATCH else 1.0)
            for name, scores, truth in self._classified(exercises)
            if (truth != UNKNOWN).any()
        ]
        return torch.stack(losses).sum()

    def _classified(
        self, exercises: Iterable[Exercise]
    ) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Of each classification its name, its scores ``[examples, classes]`` and the truth."""
        taken = list(exercises)
        with fast():
            tokens = self._learner.encode_clips(np.stack([each.pictures for each in taken])).float()
        whole_truth = torch.from_numpy(np.stack([each.labels.whole for each in taken], axis=1))
        patch_truth = torch.from_numpy(np.stack([each.labels.patches for each in taken], axis=1))
        # The class token, which precedes the patches, is classified for the whole picture.
        first = tokens.shape[1] - patch_truth.shape[2]
        whole = self.heads["whole"](tokens[:, first - 1]).split(list(WHOLE.values()), dim=-1)
        patch = self.heads["patch"](tokens[:, first:]).split(list(PATCH.values()), dim=-1)
        yield from zip(WHOLE, whole, whole_truth, strict=True)
        for name, scores, truth in zip(PATCH, patch, patch_truth, strict=True):
            yield name, scores.flatten(0, 1), truth.flatten()
