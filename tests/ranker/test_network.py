"""The gradient is the one of the loss, and learning makes what was said more likely."""

import numpy as np
import pytest

pytest.importorskip("numba")

from headstart_research.ranker.network import (
    NUM_WEIGHTS,
    add_gradient,
    first_weights,
    score,
    step,
    workspace,
)
from headstart_research.ranker.places import (
    NUM_SHARES,
    PLACE_TRAITS,
    WORD_TRAITS,
    new_view,
)

PLACES, WORDS, TRUTH = 9, 4, 2


def some_view(seed):
    rng, view = np.random.default_rng(seed), new_view()
    view.places[:PLACES] = rng.random((PLACES, PLACE_TRAITS)) * (rng.random(PLACE_TRAITS) < 0.7)
    view.votes[:PLACES] = [0, 1, 2, 3, 0, 1, 2, 3, 0]
    view.traits[:WORDS, NUM_SHARES:] = rng.random((WORDS, WORD_TRAITS - NUM_SHARES))
    return view


def some_weights(seed):
    rng = np.random.default_rng(seed)
    return (0.3 * rng.standard_normal(NUM_WEIGHTS)).astype(np.float32)


def chances(weights, seed=1):
    view = some_view(seed)
    attention, hidden, scores = workspace()
    score(weights, view, PLACES, WORDS, attention, hidden, scores)
    odds = np.exp(scores[:WORDS].astype(np.float64) - scores[:WORDS].max())
    return view, attention, hidden, odds / odds.sum()


def loss(weights):
    return -np.log(chances(weights)[3][TRUTH])


def gradient_of(weights):
    view, attention, hidden, shares = chances(weights)
    gradient = np.zeros(NUM_WEIGHTS, dtype=np.float32)
    errors = np.zeros(16, dtype=np.float32)
    errors[:WORDS] = shares
    errors[TRUTH] -= 1
    add_gradient(weights, view, PLACES, WORDS, attention, hidden, errors, gradient)
    return gradient


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_one_of_the_loss(seed):
    weights = some_weights(seed)
    gradient, rng = gradient_of(weights), np.random.default_rng(seed)
    for _ in range(20):
        direction = rng.standard_normal(NUM_WEIGHTS).astype(np.float32)
        direction /= np.linalg.norm(direction)
        slope = (loss(weights + 0.002 * direction) - loss(weights - 0.002 * direction)) / 0.004
        assert slope == pytest.approx(float(gradient @ direction), rel=0.05, abs=2e-3)
    for place in rng.choice(NUM_WEIGHTS, 60, replace=False):
        direction = np.zeros(NUM_WEIGHTS, dtype=np.float32)
        direction[place] = 0.002
        slope = (loss(weights + direction) - loss(weights - direction)) / 0.004
        assert slope == pytest.approx(float(gradient[place]), rel=0.05, abs=2e-3)


def test_shares_of_a_head_are_those_of_the_places_that_vote():
    weights = np.zeros(NUM_WEIGHTS, dtype=np.float32)
    view, _, _, shares = chances(weights)
    assert view.traits[:WORDS, 0] == pytest.approx([3 / 9, 2 / 9, 2 / 9, 2 / 9])
    assert shares == pytest.approx([0.25] * 4)


def test_steps_make_what_was_said_likely():
    weights = some_weights(4)
    means, squares = np.zeros_like(weights), np.zeros_like(weights)
    before = loss(weights)
    for number in range(1, 60):
        step(weights, gradient_of(weights), means, squares, number, 0.01)
    assert loss(weights) < 0.2 * before
    assert np.isfinite(weights).all()


def test_first_weights_are_drawn_from_the_seed():
    assert (first_weights(1) == first_weights(1)).all()
    assert (first_weights(1) != first_weights(2)).any()
