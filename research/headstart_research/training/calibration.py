"""How far a bridge's confidence can be trusted, fitted on streams that it has not learnt from.

A network that was trained to the end is surer than it is right. The chance it gives to its best
word decides how long a draft is, so it is mapped to how often such a word was right: a straight
line from log odds to log odds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart_research.training.bridge_data import BridgeData
from headstart_research.training.bridge_model import BridgeModel
from headstart_research.training.bridge_task import packed

NUM_ANSWERS = 256
_BATCH = 32
_STEPS = 30
_EDGE = 1e-6
_PULL = 1.0  # towards "as it says", for who has very few streams


@torch.no_grad()
def judged_guesses(
    model: BridgeModel, data: BridgeData, features: Sequence[str], num_answers: int = NUM_ANSWERS
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Chances of the best words on held-out streams, and whether the target said them."""
    words = model.config.vocabulary_size
    chances: list[NDArray[np.float64]] = []
    right: list[NDArray[np.bool_]] = []
    examples = data.examined(num_answers, features)
    for start in range(0, len(examples), _BATCH):
        batch = packed(model.config, data.vocabulary, examples[start : start + _BATCH])
        best = model(batch).max(dim=-1)
        said = batch.targets <= words  # a word that it cannot say is one that it had wrong
        chances.append(best.values[said].double().numpy())
        right.append((best.indices == batch.targets)[said].numpy())
    return np.concatenate(chances), np.concatenate(right)


def fit(chances: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of the line, by Newton's method."""
    inner = np.clip(chances, _EDGE, 1 - _EDGE)
    log_odds = np.log(inner) - np.log1p(-inner)
    inputs = np.stack([log_odds, np.ones_like(log_odds)], axis=1)
    prior = line = np.array([1.0, 0.0])
    for _ in range(_STEPS):
        expected = 1.0 / (1.0 + np.exp(-(inputs @ line)))
        gradient = inputs.T @ (expected - right) + _PULL * (line - prior)
        spread = expected * (1 - expected)
        curvature = (inputs * spread[:, None]).T @ inputs + _PULL * np.eye(2)
        line = line - np.linalg.solve(curvature, gradient)
    return float(line[0]), float(line[1])


def error(
    chances: NDArray[np.floating[Any]], right: NDArray[np.bool_], num_bins: int = 15
) -> float:
    """The expected calibration error: how far apart chance and share are, over equal bins."""
    bins = np.minimum((chances * num_bins).astype(int), num_bins - 1)
    apart = 0.0
    for number in range(num_bins):
        inside = bins == number
        if inside.any():
            apart += inside.mean() * abs(chances[inside].mean() - right[inside].mean())
    return float(apart)
