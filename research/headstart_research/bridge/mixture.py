"""The last step of a bridge, compiled: the likeliest next word, of three who may say it.

They are the network itself, an earlier answer that a pointer finds, and memory. A gate weighs them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart_research.bridge.arithmetic import Array, product, softmax
from headstart_research.bridge.context import NO_TOKEN
from headstart_research.compilation import compiled

OWN, POINTER, MEMORY = range(3)
"""The parts of the mixture, by their places in the gate."""
_CLOSED = np.float32(-1e9)


class Mixture(NamedTuple):
    """Its weights."""

    words: Array
    gate: Array
    gate_bias: Array
    pointer_query: Array


@compiled
def guess(
    mixture: Mixture,
    states: Array,
    pointer_keys: Array,
    followed_by: NDArray[np.int32],
    suggested: NDArray[np.int32],
) -> tuple[NDArray[np.int64], Array]:
    """After each token the likeliest word, and its chance.

    ``pointer_keys`` and ``followed_by`` are of the places that can be quoted, ``suggested`` is what
    memory would say.
    """
    num_tokens, num_quotable = len(states), len(followed_by)
    chances = product(states, mixture.words)
    gates = product(states, mixture.gate)
    scale = np.float32(1 / np.sqrt(len(mixture.pointer_query)))
    quoted = product(product(states, mixture.pointer_query) * scale, pointer_keys)
    best = np.empty(num_tokens, dtype=np.int64)
    best_chances = np.empty(num_tokens, dtype=np.float32)
    for token in range(num_tokens):
        gate, row = gates[token], chances[token]
        gate += mixture.gate_bias
        if not num_quotable:
            gate[POINTER] = _CLOSED
        if suggested[token] == NO_TOKEN:
            gate[MEMORY] = _CLOSED
        softmax(gate, 3)
        softmax(row, len(row))
        row *= gate[OWN]
        if num_quotable:
            softmax(quoted[token], num_quotable)
            for place in range(num_quotable):
                row[followed_by[place]] += gate[POINTER] * quoted[token, place]
        if suggested[token] != NO_TOKEN:
            row[suggested[token]] += gate[MEMORY]
        best[token] = row.argmax()
        best_chances[token] = row[best[token]]
    return best, best_chances
