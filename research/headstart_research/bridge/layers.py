"""The layers of a bridge, compiled: tokens are read into what was read of their sequence before."""

from typing import NamedTuple

import numpy as np

from headstart_research.bridge.arithmetic import Array, add_product, attend, normed, product
from headstart_research.compilation import compiled

_ZERO = np.float32(0)


class Layers(NamedTuple):
    """Weights of all layers, the layer first."""

    norm_attention: Array
    qkv: Array
    out: Array
    norm_looking: Array
    look_query: Array
    look_out: Array
    norm_hidden: Array
    up: Array
    down: Array


class Cache(NamedTuple):
    """Keys and values, the layer and the head first: of the tokens, and of the features seen.

    Keys are ``[tokens, head]``, values ``[head, tokens]``: so both products of attention read rows
    as they lie in memory.
    """

    keys: Array
    values: Array
    seen_keys: Array
    seen_values: Array


@compiled
def read(layers: Layers, cache: Cache, start: int, cos: Array, sin: Array, states: Array) -> None:
    """Take the tokens from place ``start`` on through all layers.

    ``states`` are what is known of each token, and are changed to what the last layer says.
    """
    num_seen = cache.seen_keys.shape[2]
    for place in range(len(layers.qkv)):
        rows = normed(states, layers.norm_attention[place])
        qkv = product(rows, layers.qkv[place])
        _attend_to_tokens(qkv, cache.keys[place], cache.values[place], start, cos, sin, rows)
        _add(rows, layers.out[place], states)
        if num_seen:
            rows = normed(states, layers.norm_looking[place])
            query = product(rows, layers.look_query[place])
            _attend_to_features(query, cache.seen_keys[place], cache.seen_values[place], rows)
            _add(rows, layers.look_out[place], states)
        inner = product(normed(states, layers.norm_hidden[place]), layers.up[place])
        for row in range(len(inner)):
            for unit in range(inner.shape[1]):
                positive = max(inner[row, unit], _ZERO)
                inner[row, unit] = positive * positive
        _add(inner, layers.down[place], states)


@compiled
def _add(rows: Array, weight: Array, states: Array) -> None:
    add_product(rows, weight, weight.shape[1], len(weight), states)


@compiled
def _attend_to_tokens(
    qkv: Array, keys: Array, values: Array, start: int, cos: Array, sin: Array, rows: Array
) -> None:
    """Keep keys and values, turned by their places, and leave in ``rows`` what queries find."""
    num_heads, _, head = keys.shape
    num_tokens, width = rows.shape
    half = head // 2
    scale = np.float32(1 / np.sqrt(head))
    query = np.empty((num_tokens, head), dtype=np.float32)
    for number in range(num_heads):
        at = number * head
        for token in range(num_tokens):
            place = start + token
            for k in range(half):
                turn_by, turn_up = cos[place, k], sin[place, k]
                first, second = qkv[token, at + k], qkv[token, at + half + k]
                query[token, k] = (first * turn_by - second * turn_up) * scale
                query[token, half + k] = (second * turn_by + first * turn_up) * scale
                first, second = qkv[token, width + at + k], qkv[token, width + at + half + k]
                keys[number, place, k] = first * turn_by - second * turn_up
                keys[number, place, half + k] = second * turn_by + first * turn_up
            for k in range(head):
                values[number, k, place] = qkv[token, 2 * width + at + k]
        attend(query, keys[number], values[number], start + 1, 1, at, rows)


@compiled
def _attend_to_features(queries: Array, keys: Array, values: Array, rows: Array) -> None:
    """Leave in ``rows`` what the queries find among the features."""
    num_heads, num_seen, head = keys.shape
    scale = np.float32(1 / np.sqrt(head))
    query = np.empty((len(rows), head), dtype=np.float32)
    for number in range(num_heads):
        at = number * head
        for token in range(len(rows)):
            for k in range(head):
                query[token, k] = queries[token, at + k] * scale
        attend(query, keys[number], values[number], num_seen, 0, at, rows)
