"""What a bridge is computed with, against numpy."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs what the engine brings")

from headstart_research.bridge.arithmetic import add_product, attend, normed, product, softmax


def drawn(*shape, scale=1.0):
    return (scale * np.random.default_rng(sum(shape)).normal(size=shape)).astype(np.float32)


def shares(scores):
    exponents = np.exp(np.float64(scores) - np.max(scores, axis=-1, keepdims=True))
    return exponents / exponents.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("num_rows", [0, 1, 3, 4, 13])
@pytest.mark.parametrize("num_columns", [1, 4, 7, 12])
@pytest.mark.parametrize("depth", [1, 9, 32])
def test_products_of_any_shape(num_rows, num_columns, depth):
    rows, weight = drawn(num_rows, depth), drawn(num_columns, depth)
    assert np.allclose(product(rows, weight), rows @ weight.T, atol=1e-5)


def test_a_product_is_added_where_it_is_asked_for_and_nowhere_else():
    rows, weight, out = drawn(6, 20), drawn(11, 20), drawn(6, 15)
    wanted = out.copy()
    wanted[:, :9] += rows[:, :17] @ weight[:9, :17].T
    add_product(rows, weight, 17, 9, out)
    assert np.allclose(out, wanted, atol=1e-5)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_softmax_of_scores_near_and_far_apart(scale):
    scores = drawn(300, scale=scale)
    row = scores.copy()
    softmax(row, 280)
    assert np.allclose(row[:280], shares(scores[:280]), atol=1e-6, rtol=1e-4)
    assert not row[280:].any()


def test_normed_rows_have_unit_mean_square_before_the_weight():
    rows, weight = drawn(5, 16), drawn(16)
    scale = np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + 1e-6)
    assert np.allclose(normed(rows, weight), rows / scale * weight, atol=1e-5)
    assert np.allclose(normed(np.zeros_like(rows), weight), 0.0)


@pytest.mark.parametrize("num_queries", [1, 5, 40])
@pytest.mark.parametrize("num_more", [0, 1])
def test_each_query_finds_what_it_sees_and_nothing_later(num_queries, num_more):
    queries, keys = drawn(num_queries, 8), drawn(60, 8)
    values, out = drawn(8, 60), drawn(num_queries, 12)
    wanted = out.copy()
    for place, query in enumerate(queries):
        seen = 12 + num_more * place
        wanted[place, 3:11] = values[:, :seen] @ shares(keys[:seen] @ query)
    attend(queries, keys, values, 12, num_more, 3, out)
    assert np.allclose(out, wanted, atol=1e-4)
