"""Fits a KV bridge in closed form: a ridge regression from sums over clips.

Clips are added one at a time and not kept, so that their number does not matter to the memory. The
inputs of a place are the same for all frames of a clip, so the sums are small.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.errors import TrainingError
from headstart.speculation.drafter import Features
from headstart_research.kv_bridge.bridge import KvBridge, Rows, kv_inputs, recencies
from headstart_research.kv_bridge.config import KvConfig

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Of the penalty on weights, in parts of the mean variance of an input; the best one is taken."""


@dataclass(frozen=True, eq=False)
class SeenClip:
    """What the event model saw of a clip, and the target's rows of its prompt."""

    features: Features
    rows: Rows
    """``[tokens, row]``"""


class KvSums:
    """All that a fit needs of the clips so far."""

    def __init__(self, config: KvConfig) -> None:
        self._config = config
        places, inputs = config.tokens_per_frame, 2 * config.feature_size
        self._num_clips = 0
        self._rows = np.zeros((config.num_tokens, config.row_size))
        self._inputs = np.zeros((places, inputs))
        self._squares = np.zeros((inputs, inputs))
        self._products = np.zeros((2, inputs, config.row_size))

    def add(self, clip: SeenClip) -> None:
        """Count one clip."""
        seen = kv_inputs(clip.features, self._config.tokens_per_frame).astype(np.float64)
        rows = clip.rows.astype(np.float64)
        self._num_clips += 1
        self._rows += rows
        self._inputs += seen
        self._squares += seen.T @ seen
        for sums, total in zip(self._products, self._over_frames(rows), strict=True):
            sums += seen.T @ total

    def fit(self, strength: float) -> KvBridge:
        """The bridge with the least squared error and penalty."""
        count, frames = self._num_clips, recencies(self._config.num_frames).astype(np.float64)
        if count < 2:
            raise TrainingError(f"{count} clips with events: give two at least, better hundreds")
        means, centre = self._rows / count, self._inputs / count
        squares = self._squares - count * centre.T @ centre
        products = [
            sums - count * centre.T @ total
            for sums, total in zip(self._products, self._over_frames(means), strict=True)
        ]
        # Weights of all frames, and those that count by recency: two copies of the inputs.
        shares = np.array([[len(frames), frames.sum()], [frames.sum(), (frames**2).sum()]])
        both = np.kron(shares, squares)
        penalty = strength * np.trace(both) / len(both) + np.finfo(np.float32).tiny
        weights = np.linalg.solve(both + penalty * np.eye(len(both)), np.concatenate(products))
        return KvBridge(
            self._config,
            means.astype(np.float32),
            centre.astype(np.float32),
            weights.reshape(2, len(squares), -1).astype(np.float32),
        )

    def _over_frames(self, rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The sum of the frames' rows at each place, and the sum by recency."""
        config = self._config
        frames = rows[len(config.head_ids) :].reshape(
            config.num_frames, config.tokens_per_frame, -1
        )
        recency = recencies(config.num_frames).astype(np.float64)
        return [frames.sum(axis=0), np.tensordot(recency, frames, axes=1)]


def unexplained(bridge: KvBridge, clips: Sequence[SeenClip]) -> Rows:
    """The share of the variance that a bridge leaves, ``[layers, 2]`` of keys and values.

    Of the clips' own tokens; 1 is as good as the mean rows.
    """
    config, head = bridge.config, len(bridge.config.head_ids)
    left = np.zeros((config.num_layers, 2))
    total = np.zeros((config.num_layers, 2))
    shape = (-1, config.num_layers, 2, config.num_kv_heads * config.head_size)
    means = bridge.means[head:].reshape(shape)
    for clip in clips:
        rows = clip.rows[head:].reshape(shape)
        guessed = bridge.states(clip.features)[head:].reshape(shape)
        left += ((rows - guessed) ** 2).sum(axis=(0, 3))
        total += ((rows - means) ** 2).sum(axis=(0, 3))
    shares: Rows = (left / np.maximum(total, np.finfo(np.float64).tiny)).astype(np.float32)
    return shares


def best_fit(sums: KvSums, kept_back: Sequence[SeenClip]) -> tuple[KvBridge, float]:
    """The bridge of the strength that leaves least of clips it has not learnt, and the strength."""
    tried = [(sums.fit(strength), strength) for strength in STRENGTHS]
    return min(tried, key=lambda one: float(unexplained(one[0], kept_back).mean()))
