"""A bridge's network, computed with numpy: no torch beside a target, and no compiler.

It is a causal transformer, of which the answer also attends to features of the clip. The chance of
a word is a mixture of three: what the network says by itself, what followed a place of an earlier
answer (a pointer), and what memory suggests.
`headstart.training.bridge_model` has the same network for training; a test holds them together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.bridges.config import BridgeConfig
from headstart.bridges.context import NO_TOKEN
from headstart.bridges.vocabulary import NUM_MARKS
from headstart.errors import TrainingError

Array = NDArray[np.floating[Any]]
"""Of float32: mypy takes a product of two for float64."""

ROPE_BASE = 10_000.0
NORM_EPSILON = 1e-6
NUM_MATCHES = 7
"""Lengths of a match of memory's, by powers of two; 0 is none."""
OWN, POINTER, MEMORY = range(3)
"""The parts of the mixture, by their places in the gate."""


def calibrated(chances: Array, calibration: Array) -> Array:
    """How often guesses of these chances are right: their log odds, stretched and moved."""
    inner = np.clip(chances, 1e-6, 1.0 - 1e-6)
    log_odds = np.log(inner) - np.log1p(-inner)
    right: Array = 1.0 / (1.0 + np.exp(-(calibration[0] * log_odds + calibration[1])))
    return right


def match_kind(match: int) -> int:
    """Of a match of so many tokens."""
    return min(match.bit_length(), NUM_MATCHES - 1)


def rope_table(num_positions: int, head_width: int) -> tuple[Array, Array]:
    """Cosines and sines, ``[positions, head_width / 2]``."""
    frequencies = ROPE_BASE ** (-np.arange(0, head_width, 2) / head_width)
    angles = np.arange(num_positions)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@dataclass(frozen=True, eq=False, slots=True)
class _Layer:
    norm_attention: Array
    qkv: Array
    out: Array
    norm_looking: Array
    look_query: Array
    look_key_value: Array
    look_out: Array
    norm_hidden: Array
    up: Array
    down: Array


class Reading:
    """What a network has read of one sequence so far, with room for more."""

    __slots__ = (
        "followed_by",
        "keys",
        "length",
        "pointer_keys",
        "seen_keys",
        "seen_values",
        "values",
    )

    def __init__(self, config: BridgeConfig, num_positions: int) -> None:
        head = config.width // config.num_heads
        shape = (config.num_layers, config.num_heads, num_positions, head)
        self.keys: Array = np.empty(shape, np.float32)
        self.values: Array = np.empty(shape, np.float32)
        self.length = 0
        self.seen_keys: list[Array] = []
        """Of the features, ``[heads, tokens, head]`` for each layer."""
        self.seen_values: list[Array] = []
        self.followed_by: NDArray[np.int32] = np.empty(0, np.int32)
        """What can be quoted, and by which key each place of it is found."""
        self.pointer_keys: Array = np.empty((0, config.pointer_width), np.float32)

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
    """Weights, and what they compute. Holds no state of a request; used by one thread."""

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

        width, hidden, words = config.width, config.hidden, config.vocabulary_size
        self._embedding = weight("embedding.weight", words + NUM_MARKS, width)
        # Turned once, so that a product reads rows as they lie in memory.
        self._head = np.ascontiguousarray(self._embedding[:words].T)
        suggestion = weight("suggestion", width, width)
        self._suggested = self._embedding[:words] @ suggestion.T
        self._match = weight("match.weight", NUM_MATCHES, width)
        self._features = {
            feature.name: (
                np.ascontiguousarray(weight(f"{feature.name}.weight", width, feature.size).T),
                weight(f"{feature.name}.places.weight", feature.max_tokens, width),
            )
            for feature in config.features
        }
        self._nothing_seen = weight("nothing_seen.weight", 1, width)
        self._norm_seen = weight("norm_seen", width)
        self._layers = [
            _Layer(
                weight(f"layers.{place}.norm_attention", width),
                np.ascontiguousarray(weight(f"layers.{place}.qkv", 3 * width, width).T),
                np.ascontiguousarray(weight(f"layers.{place}.out", width, width).T),
                weight(f"layers.{place}.norm_looking", width),
                np.ascontiguousarray(weight(f"layers.{place}.look_query", width, width).T),
                np.ascontiguousarray(weight(f"layers.{place}.look_key_value", 2 * width, width).T),
                np.ascontiguousarray(weight(f"layers.{place}.look_out", width, width).T),
                weight(f"layers.{place}.norm_hidden", width),
                np.ascontiguousarray(weight(f"layers.{place}.up", hidden, width).T),
                np.ascontiguousarray(weight(f"layers.{place}.down", width, hidden).T),
            )
            for place in range(config.num_layers)
        ]
        self._norm = weight("norm", width)
        self._gate = np.ascontiguousarray(weight("gate.weight", 3, width).T)
        self._gate_bias = weight("gate.bias", 3)
        self._query = np.ascontiguousarray(weight("pointer_query", config.pointer_width, width).T)
        self._key = np.ascontiguousarray(weight("pointer_key", config.pointer_width, width).T)
        self._calibration = weight("calibration", 2)
        self._cos, self._sin = rope_table(config.max_positions, width // config.num_heads)

    def read_context(self, own_ids: NDArray[np.int32], followed_by: NDArray[np.int32]) -> Reading:
        """Begin a sequence with what stands before the answer. No feature is seen yet."""
        reading = Reading(self.config, len(own_ids) + 1 + self.config.max_answer_tokens)
        self.look(reading, {})
        hidden = self._read(reading, self._embedding[own_ids], looking=False)
        quotable = followed_by != NO_TOKEN
        reading.followed_by = followed_by[quotable]
        reading.pointer_keys = hidden[quotable] @ self._key
        return reading

    def look(self, reading: Reading, features: Mapping[str, Array]) -> None:
        """Let an answer see these features, each as `fitted` gives it, and no others.

        What was read of the answer was read without them: cut it off first.
        """
        heads, head = self.config.num_heads, self.config.width // self.config.num_heads
        seen = [self._nothing_seen]
        for name, (weight, places) in self._features.items():
            if name in features:
                seen.append(features[name] @ weight + places[: len(features[name])])
        inputs = _normed(np.concatenate(seen), self._norm_seen)
        pairs = [
            (inputs @ layer.look_key_value).reshape(-1, 2, heads, head).transpose(1, 2, 0, 3)
            for layer in self._layers
        ]
        reading.seen_keys = [np.ascontiguousarray(key) for key, _ in pairs]
        reading.seen_values = [np.ascontiguousarray(value) for _, value in pairs]

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
        inputs = self._embedding[list(own_ids)] + self._match[list(matches)]
        next_ids = np.asarray(suggested)
        known = next_ids != NO_TOKEN
        inputs[known] += self._suggested[next_ids[known]]
        hidden = self._read(reading, inputs, looking=True)
        return self._guess(reading, hidden, next_ids, known)

    def _guess(
        self,
        reading: Reading,
        hidden: Array,
        next_ids: NDArray[np.int64],
        known: NDArray[np.bool_],
    ) -> Guesses:
        weighed = hidden @ self._gate + self._gate_bias
        weighed[~known, MEMORY] = -np.inf
        if not len(reading.followed_by):
            weighed[:, POINTER] = -np.inf
        gates = _softmax(weighed)
        chances = _softmax(hidden @ self._head) * gates[:, OWN, None]
        rows = np.arange(len(hidden))
        if len(reading.followed_by):
            scores = hidden @ self._query @ reading.pointer_keys.T
            quoted = _softmax(scores / np.sqrt(np.float32(self.config.pointer_width)))
            quoted *= gates[:, POINTER, None]
            for row in rows:
                chances[row] += np.bincount(
                    reading.followed_by, quoted[row], minlength=chances.shape[1]
                )
        chances[rows[known], next_ids[known]] += gates[known, MEMORY]
        best = chances.argmax(axis=1)
        return Guesses(best, calibrated(chances[rows, best], self._calibration))

    def _read(self, reading: Reading, inputs: Array, *, looking: bool) -> Array:
        """Add tokens to a sequence; returns the last layer's state of each."""
        config = self.config
        heads, start, num = config.num_heads, reading.length, len(inputs)
        stop, head = start + num, config.width // config.num_heads
        cos, sin = self._cos[start:stop], self._sin[start:stop]
        scale = np.float32(head**-0.5)
        future = np.triu(np.full((num, num), -np.inf, np.float32), 1) if num > 1 else None
        states = inputs
        for place, layer in enumerate(self._layers):
            qkv = (_normed(states, layer.norm_attention) @ layer.qkv).reshape(num, 3, heads, head)
            query, key, value = qkv.transpose(1, 2, 0, 3)
            reading.keys[place, :, start:stop] = _turned(key, cos, sin)
            reading.values[place, :, start:stop] = value
            keys = reading.keys[place, :, :stop]
            scores = (_turned(query, cos, sin) * scale) @ keys.transpose(0, 2, 1)
            if future is not None:
                scores[:, :, start:] += future
            mixed = _softmax(scores) @ reading.values[place, :, :stop]
            states = states + mixed.transpose(1, 0, 2).reshape(num, config.width) @ layer.out
            if looking:
                query = (_normed(states, layer.norm_looking) @ layer.look_query) * scale
                query = query.reshape(num, heads, head).transpose(1, 0, 2)
                shares = _softmax(query @ reading.seen_keys[place].transpose(0, 2, 1))
                looked = (shares @ reading.seen_values[place]).transpose(1, 0, 2)
                states = states + looked.reshape(num, config.width) @ layer.look_out
            inner = np.maximum(_normed(states, layer.norm_hidden) @ layer.up, 0.0)
            states = states + np.square(inner) @ layer.down
        reading.length = stop
        return _normed(states, self._norm)


def _normed(states: Array, weight: Array) -> Array:
    mean = np.einsum("nd,nd->n", states, states) / states.shape[1]
    normed: Array = states * (weight / np.sqrt(mean + NORM_EPSILON)[:, None])
    return normed


def _turned(vectors: Array, cos: Array, sin: Array) -> Array:
    """Rotary positions: of each vector the first half is turned with the second."""
    first, second = np.split(vectors, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _softmax(scores: Array) -> Array:
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = exponents / exponents.sum(axis=-1, keepdims=True)
    return shares
