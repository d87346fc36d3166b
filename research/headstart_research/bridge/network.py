"""A bridge's network, compiled by numba: no torch beside a target, and one core.

It is a causal transformer, of which the answer also attends to features of the clip. The chance of
a word is a mixture of three: what the network says by itself, what followed a place of an earlier
answer (a pointer), and what memory suggests.
`headstart_research.training.bridge_model` has the same network for training; a test holds them
together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.errors import TrainingError
from headstart_research.bridge.arithmetic import Array, normed, product
from headstart_research.bridge.config import BridgeConfig
from headstart_research.bridge.context import NO_TOKEN, NUM_MATCHES
from headstart_research.bridge.layers import Cache, Layers, read
from headstart_research.bridge.mixture import Mixture, guess
from headstart_research.bridge.vocabulary import NUM_MARKS

ROPE_BASE = 10_000.0


def calibrated(chances: Array, calibration: Array) -> Array:
    """How often guesses of these chances are right: their log odds, stretched and moved."""
    inner = np.clip(chances, 1e-6, 1.0 - 1e-6)
    log_odds = np.log(inner) - np.log1p(-inner)
    right: Array = 1.0 / (1.0 + np.exp(-(calibration[0] * log_odds + calibration[1])))
    return right


def rope_table(num_positions: int, head_width: int) -> tuple[Array, Array]:
    """Cosines and sines, ``[positions, head_width / 2]``."""
    frequencies = ROPE_BASE ** (-np.arange(0, head_width, 2) / head_width)
    angles = np.arange(num_positions)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Reading:
    """What a network has read of one sequence so far, with room for more."""

    __slots__ = ("cache", "followed_by", "length", "pointer_keys")

    def __init__(self, config: BridgeConfig, num_positions: int) -> None:
        layers, heads, head = config.num_layers, config.num_heads, config.width // config.num_heads
        self.cache = Cache(
            np.empty((layers, heads, num_positions, head), np.float32),
            # A product reaches over places that a token does not see, with a share of 0.
            np.zeros((layers, heads, head, num_positions), np.float32),
            np.empty((layers, heads, 0, head), np.float32),
            np.empty((layers, heads, head, 0), np.float32),
        )
        self.length = 0
        self.followed_by: NDArray[np.int32] = np.empty(0, np.int32)
        """What can be quoted, and by which key each place of it is found."""
        self.pointer_keys: Array = np.empty((0, config.pointer_width), np.float32)

    @property
    def num_positions(self) -> int:
        """How many tokens there is room for."""
        return self.cache.keys.shape[2]

    def cut(self, length: int) -> None:
        """Forget what was read beyond so many tokens."""
        self.length = min(length, self.length)


@dataclass(frozen=True, eq=False, slots=True)
class Guesses:
    """The likeliest next word after each token that was read."""

    own_ids: NDArray[np.int64]
    chances: Array
    """How often such a guess is right."""


class BridgeNetwork:
    """Weights, and what they compute. Holds no state of a request; used by one thread.

    The first network of a machine takes some seconds to make: it is compiled then.
    """

    def __init__(self, config: BridgeConfig, weights: Mapping[str, Array]) -> None:
        self.config = config

        def weight(name: str, *shape: int) -> Array:
            found = weights.get(name)
            if found is None or found.shape != shape:
                raise TrainingError(
                    f"the bridge's weights have no {name} of the shape {shape}: its config.json"
                    " and model.safetensors are of two bridges"
                )
            return np.ascontiguousarray(found, np.float32)

        def of_layers(name: str, *shape: int) -> Array:
            places = range(config.num_layers)
            return np.stack([weight(f"layers.{place}.{name}", *shape) for place in places])

        width, hidden, words = config.width, config.hidden, config.vocabulary_size
        self._embedding = weight("embedding.weight", words + NUM_MARKS, width)
        suggestion = weight("suggestion", width, width)
        self._suggested = self._embedding[:words] @ suggestion.T
        self._match = weight("match.weight", NUM_MATCHES, width)
        self._features = {
            feature.name: (
                weight(f"{feature.name}.weight", width, feature.size),
                weight(f"{feature.name}.places.weight", feature.max_tokens, width),
            )
            for feature in config.features
        }
        self._nothing_seen = weight("nothing_seen.weight", 1, width)
        self._norm_seen = weight("norm_seen", width)
        self._look_key_value = of_layers("look_key_value", 2 * width, width)
        self._layers = Layers(
            of_layers("norm_attention", width),
            of_layers("qkv", 3 * width, width),
            of_layers("out", width, width),
            of_layers("norm_looking", width),
            of_layers("look_query", width, width),
            of_layers("look_out", width, width),
            of_layers("norm_hidden", width),
            of_layers("up", hidden, width),
            of_layers("down", width, hidden),
        )
        self._norm = weight("norm", width)
        self._mixture = Mixture(
            self._embedding[:words],
            weight("gate.weight", 3, width),
            weight("gate.bias", 3),
            weight("pointer_query", config.pointer_width, width),
        )
        self._key = weight("pointer_key", config.pointer_width, width)
        self._calibration = weight("calibration", 2)
        self._rope = rope_table(config.max_positions, width // config.num_heads)
        self._compile()

    def _compile(self) -> None:
        """Compute something once: now, or it would be compiled in some step of the engine."""
        nothing = np.array([NO_TOKEN], np.int32)
        reading = self.read_context(np.zeros(1, np.int32), nothing)
        self.look(reading, {})
        self.read_answer(reading, [0], nothing, [0])

    def read_context(self, own_ids: NDArray[np.int32], followed_by: NDArray[np.int32]) -> Reading:
        """Begin a sequence with what stands before the answer, which looks at no feature."""
        reading = Reading(self.config, len(own_ids) + 1 + self.config.max_answer_tokens)
        states = self._read(reading, self._embedding[own_ids])
        quotable = followed_by != NO_TOKEN
        reading.followed_by = followed_by[quotable]
        if (reading.followed_by >= self.config.vocabulary_size).any():
            raise IndexError("a context quotes what is no word")
        reading.pointer_keys = product(states[quotable], self._key)
        return reading

    def look(self, reading: Reading, features: Mapping[str, Array]) -> None:
        """Let an answer see these features, each as `fitted` gives it, and no others.

        What was read of the answer was read without them: cut it off first.
        """
        heads, head = self.config.num_heads, self.config.width // self.config.num_heads
        seen = [self._nothing_seen]
        for name, (weight, places) in self._features.items():
            if name in features:
                seen.append(product(features[name], weight) + places[: len(features[name])])
        inputs = normed(np.concatenate(seen), self._norm_seen)
        pairs = np.stack([product(inputs, weight) for weight in self._look_key_value])
        pairs = pairs.reshape(len(pairs), len(inputs), 2, heads, head)
        reading.cache = reading.cache._replace(
            seen_keys=np.ascontiguousarray(pairs[:, :, 0].transpose(0, 2, 1, 3)),
            seen_values=np.ascontiguousarray(pairs[:, :, 1].transpose(0, 2, 3, 1)),
        )

    def read_answer(
        self,
        reading: Reading,
        own_ids: Sequence[int],
        suggested: Sequence[int] | NDArray[np.int32],
        matches: Sequence[int],
    ) -> Guesses:
        """Read tokens of the answer, of which the first is the mark `ANSWER`.

        ``suggested`` is what memory would say after each, `NO_TOKEN` where it knows nothing, and
        ``matches`` how many tokens it found that by, as `match_kind` tells them apart.
        """
        states: Array = self._embedding[list(own_ids)] + self._match[list(matches)]
        next_ids = np.asarray(suggested, np.int32)
        known = next_ids != NO_TOKEN
        states[known] += self._suggested[next_ids[known]]
        states = self._read(reading, states)
        words, chances = guess(
            self._mixture, states, reading.pointer_keys, reading.followed_by, next_ids
        )
        return Guesses(words, calibrated(chances, self._calibration))

    def _read(self, reading: Reading, states: Array) -> Array:
        """Add tokens to a sequence; returns the last layer's state of each."""
        if reading.length + len(states) > min(reading.num_positions, len(self._rope[0])):
            raise IndexError("a sequence has no room for more tokens")
        read(self._layers, reading.cache, reading.length, *self._rope, states)
        reading.length += len(states)
        return normed(states, self._norm)
