"""A KV bridge: a linear map from what an event model saw to a target's keys and values of a clip.

The keys are those before rotary positions. The row of a token, its keys and values in all layers,
is the mean row at its place in the prompt, and a correction. The correction is linear in what the
event model saw at the same place of the picture and on average. It goes evenly from the oldest
frame, of which the newest events say least, to the newest one.

It is for study: no engine reads it, for an answer by it has not looked at the clip and loses to one
frame shown (docs/promise.md).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headstart.errors import TrainingError
from headstart.speculation.drafter import Features
from headstart_research.bridge.pooling import MAX_TOKENS, at_most
from headstart_research.kv_bridge.config import KvConfig

WEIGHTS = "model.safetensors"

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class KvBridge:
    """What `headstart train kv` wrote."""

    config: KvConfig
    means: Rows
    """The mean rows of the prompt's tokens up to the question, ``[tokens, row]``."""
    centre: Rows
    """The mean of `kv_inputs`."""
    weights: Rows
    """``[2, inputs, row]``: of all frames, and what is added until the newest one."""

    def __post_init__(self) -> None:
        config = self.config
        num_inputs = 2 * config.feature_size
        expected = {
            "means": (config.num_tokens, config.row_size),
            "centre": (config.tokens_per_frame, num_inputs),
            "weights": (2, num_inputs, config.row_size),
        }
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found != shape:
                raise TrainingError(
                    f"{name} of the KV bridge are {found}, and its config says {shape}: train it"
                    " again"
                )

    def states(self, features: Features) -> Rows:
        """Keys and values, ``[tokens, layers, 2, heads, size]``, by what the event model saw."""
        config = self.config
        if features.ndim != 2 or features.shape[1] != config.feature_size:
            raise TrainingError(
                f"the event model's features are {features.shape}, and the KV bridge was trained"
                f" with tokens of {config.feature_size}: use the event model it was trained with"
            )
        seen = kv_inputs(features, config.tokens_per_frame) - self.centre
        every, newest = seen @ self.weights[0], seen @ self.weights[1]
        rows = self.means.copy()
        frames = rows[len(config.head_ids) :].reshape(config.num_frames, len(seen), -1)
        for recency, frame in zip(recencies(config.num_frames), frames, strict=True):
            frame += every + recency * newest
        return rows.reshape(-1, config.num_layers, 2, config.num_kv_heads, config.head_size)

    def save(self, directory: Path) -> None:
        """Write config and weights, these as float16."""
        from safetensors.numpy import save

        self.config.write(directory)
        arrays = {"means": self.means, "centre": self.centre, "weights": self.weights}
        halves = {name: array.astype(np.float16) for name, array in arrays.items()}
        (directory / WEIGHTS).write_bytes(save(halves))

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read a directory, or raise with what is wrong with it."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        config = KvConfig.read(directory)
        try:
            found = load_file(directory / WEIGHTS)
            means, centre, weights = (
                found[name].astype(np.float32) for name in ("means", "centre", "weights")
            )
        except (OSError, SafetensorError, KeyError) as error:
            raise TrainingError(
                f"{directory / WEIGHTS} cannot be read ({error!r}): name a directory that"
                " `headstart train kv` wrote"
            ) from error
        return cls(config, means, centre, weights)


def kv_inputs(features: Features, num_places: int) -> Rows:
    """For each place of a frame what the event model saw there, and what it saw on average.

    Its last tokens are the places of its picture, row by row, as a frame's are. Where it has fewer
    than the frame, each stands for its neighbours.
    """
    tokens = at_most(features, MAX_TOKENS)
    places = np.arange(num_places)
    if len(tokens) >= num_places:
        nearest = places + len(tokens) - num_places
    else:
        nearest = places * len(tokens) // num_places
    mean = np.broadcast_to(tokens.mean(axis=0), (num_places, tokens.shape[1]))
    return np.concatenate([tokens[nearest], mean], axis=1)


def recencies(num_frames: int) -> Rows:
    """0 for the oldest frame, 1 for the newest, evenly between."""
    return np.linspace(0.0, 1.0, num_frames, dtype=np.float32)
