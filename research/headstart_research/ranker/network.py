"""The network that ranks the words which may come next, and how it learns.

Each of eight heads weighs all places by their traits; a word has that share of a head which the
places that vote for it have. A layer on the words' shares and traits gives each a score. Learning
makes the word that was said more likely among them.
"""

import numpy as np
from numpy.typing import NDArray

from headstart_research.compilation import compiled
from headstart_research.ranker.places import (
    LONGEST,
    MAX_PLACES,
    MAX_WORDS,
    NUM_HEADS,
    PLACE_TRAITS,
    WORD_TRAITS,
    View,
)

HIDDEN = 24
HEADS_END = PLACE_TRAITS * NUM_HEADS
LAYER_END = HEADS_END + WORD_TRAITS * HIDDEN
OUT_END = LAYER_END + HIDDEN
NUM_WEIGHTS = OUT_END + WORD_TRAITS
FLOOR = np.float32(1e-3)  # added to a share before its logarithm is taken
LOG_SCALE = np.float32(0.25)
DECAYS = np.array([0.9, 0.999], dtype=np.float32)
MAX_GRADIENT = np.float32(1.0)  # its length, in one step


def first_weights(seed: int) -> NDArray[np.float32]:
    """Those of a network that has learnt nothing, and goes by the longest match."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(NUM_WEIGHTS, dtype=np.float32)
    heads = weights[:HEADS_END].reshape(PLACE_TRAITS, NUM_HEADS)
    heads[:] = 0.1 * rng.standard_normal(heads.shape)
    heads[0] += (32.0, 8.0, 2.0, 8.0, 8.0, 0.0, 2.0, 4.0)  # length of the match
    heads[1] += (0.0, 4.0, 2.0, 4.0, 4.0, 2.0, 2.0, 4.0)
    heads[13] += (1.0, 4.0, 4.0, 0.0, 0.0, 0.0, 2.0, 0.0)  # recency
    heads[14] += (1.0, 0.0, 4.0, 2.0, 2.0, 0.0, 2.0, 2.0)
    heads[17] += (0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 8.0, 0.0)  # words in common
    heads[28] += (0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0)  # as many common words so far
    heads[29] += (0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0)  # at the same position
    layer = weights[HEADS_END:LAYER_END].reshape(WORD_TRAITS, HIDDEN)
    layer[:] = rng.standard_normal(layer.shape) / np.sqrt(WORD_TRAITS)
    weights[LAYER_END:OUT_END] = 0.05 * rng.standard_normal(HIDDEN)
    return weights + memory_weights()


def memory_weights() -> NDArray[np.float32]:
    """Those of a network that follows the longest match, of equal ones the most recent."""
    weights = np.zeros(NUM_WEIGHTS, dtype=np.float32)
    weights[OUT_END + LONGEST] = 2.0
    return weights


@compiled
def score(
    weights: NDArray[np.float32],
    view: View,
    num_places: int,
    num_words: int,
    attention: NDArray[np.float32],
    hidden: NDArray[np.float32],
    scores: NDArray[np.float32],
) -> None:
    """Score each word; ``attention`` and ``hidden`` are left as `add_gradient` needs them."""
    heads = weights[:HEADS_END].reshape(PLACE_TRAITS, NUM_HEADS)
    layer = weights[HEADS_END:LAYER_END].reshape(WORD_TRAITS, HIDDEN)
    out, direct = weights[LAYER_END:OUT_END], weights[OUT_END:]
    tops = np.full(NUM_HEADS, np.float32(-1e30), dtype=np.float32)
    for place in range(num_places):
        row = attention[place]
        for head in range(NUM_HEADS):
            row[head] = 0
        for trait in range(PLACE_TRAITS):
            value = view.places[place, trait]
            if value != 0:
                for head in range(NUM_HEADS):
                    row[head] += value * heads[trait, head]
        for head in range(NUM_HEADS):
            tops[head] = max(tops[head], row[head])
    totals = np.zeros(NUM_HEADS, dtype=np.float32)
    for place in range(num_places):
        traits = view.traits[view.votes[place]]
        for head in range(NUM_HEADS):
            value = np.exp(attention[place, head] - tops[head])
            attention[place, head] = value
            totals[head] += value
            traits[head] += value
    for place in range(num_places):
        for head in range(NUM_HEADS):
            attention[place, head] /= totals[head]
    for word in range(num_words):
        traits, row = view.traits[word], hidden[word]
        for head in range(NUM_HEADS):
            traits[head] /= totals[head]
            traits[NUM_HEADS + head] = np.log(traits[head] + FLOOR) * LOG_SCALE
        for unit in range(HIDDEN):
            row[unit] = 0
        total = np.float32(0)
        for trait in range(WORD_TRAITS):
            value = traits[trait]
            if value != 0:
                total += value * direct[trait]
                for unit in range(HIDDEN):
                    row[unit] += value * layer[trait, unit]
        for unit in range(HIDDEN):
            row[unit] = max(row[unit], np.float32(0))
            total += row[unit] * out[unit]
        scores[word] = total


@compiled
def add_gradient(
    weights: NDArray[np.float32],
    view: View,
    num_places: int,
    num_words: int,
    attention: NDArray[np.float32],
    hidden: NDArray[np.float32],
    errors: NDArray[np.float32],
    gradient: NDArray[np.float32],
) -> None:
    """Add the gradient of one choice; ``errors`` are the words' chances, less 1 of the one said."""
    layer = weights[HEADS_END:LAYER_END].reshape(WORD_TRAITS, HIDDEN)
    out, direct = weights[LAYER_END:OUT_END], weights[OUT_END:]
    of_heads = gradient[:HEADS_END].reshape(PLACE_TRAITS, NUM_HEADS)
    of_layer = gradient[HEADS_END:LAYER_END].reshape(WORD_TRAITS, HIDDEN)
    of_out, of_direct = gradient[LAYER_END:OUT_END], gradient[OUT_END:]
    of_shares = np.zeros((MAX_WORDS, NUM_HEADS), dtype=np.float32)
    means = np.zeros(NUM_HEADS, dtype=np.float32)
    of_units = np.empty(HIDDEN, dtype=np.float32)
    for word in range(num_words):
        traits, error = view.traits[word], errors[word]
        for unit in range(HIDDEN):
            of_out[unit] += error * hidden[word, unit]
            of_units[unit] = error * out[unit] if hidden[word, unit] > 0 else np.float32(0)
        for trait in range(WORD_TRAITS):
            value = traits[trait]
            of_direct[trait] += error * value
            for unit in range(HIDDEN):
                of_layer[trait, unit] += value * of_units[unit]
        for head in range(NUM_HEADS):
            plain, logged = error * direct[head], error * direct[NUM_HEADS + head]
            for unit in range(HIDDEN):
                plain += layer[head, unit] * of_units[unit]
                logged += layer[NUM_HEADS + head, unit] * of_units[unit]
            of_share = plain + logged * LOG_SCALE / (traits[head] + FLOOR)
            of_shares[word, head] = of_share
            means[head] += of_share * traits[head]
    of_place = np.empty(NUM_HEADS, dtype=np.float32)
    for place in range(num_places):
        word = view.votes[place]
        for head in range(NUM_HEADS):
            of_place[head] = attention[place, head] * (of_shares[word, head] - means[head])
        for trait in range(PLACE_TRAITS):
            value = view.places[place, trait]
            if value != 0:
                for head in range(NUM_HEADS):
                    of_heads[trait, head] += value * of_place[head]


@compiled
def step(
    weights: NDArray[np.float32],
    gradient: NDArray[np.float32],
    means: NDArray[np.float32],
    squares: NDArray[np.float32],
    num_steps: int,
    rate: float,
) -> None:
    """Move the weights against the gradient: Adam, with the gradient's length bounded."""
    length = np.float32(0)
    for place in range(NUM_WEIGHTS):
        length += gradient[place] * gradient[place]
    length = np.sqrt(length)
    shorten = MAX_GRADIENT / length if length > MAX_GRADIENT else np.float32(1)
    slow, slower = DECAYS[0], DECAYS[1]
    grown, grown_squares = 1 - slow**num_steps, 1 - slower**num_steps
    for place in range(NUM_WEIGHTS):
        value = gradient[place] * shorten
        means[place] += (1 - slow) * (value - means[place])
        squares[place] += (1 - slower) * (value * value - squares[place])
        deviation = np.sqrt(squares[place] / grown_squares) + np.float32(1e-8)
        weights[place] -= rate * (means[place] / grown) / deviation


@compiled
def workspace() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    return (
        np.empty((MAX_PLACES, NUM_HEADS), dtype=np.float32),
        np.empty((MAX_WORDS, HIDDEN), dtype=np.float32),
        np.empty(MAX_WORDS, dtype=np.float32),
    )
