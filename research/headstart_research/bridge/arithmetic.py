"""What a network is computed with, compiled: products of matrices, softmax, norm, attention.

Everything is of float32 and runs on one core. A weight stands as it is trained, ``[out, in]``.
Compiled code checks no index: whoever calls it has to.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart_research.compilation import compiled

Array = NDArray[np.floating[Any]]
"""Of float32: mypy takes a product of two for float64."""

NORM_EPSILON = 1e-6
_EPSILON = np.float32(NORM_EPSILON)
_ZERO, _ONE = np.float32(0), np.float32(1)
_LEAST = np.float32(-40)  # an exponential of less is as good as none
_HALVINGS = 5
_PART = np.float32(0.5**_HALVINGS)
_HALF, _SIXTH, _24TH, _120TH = (np.float32(1 / over) for over in (2, 6, 24, 120))
_QUERIES = 16
"""That attend at a time: their scores stay in the processor's cache, and end where the last of them
sees no further."""


@compiled
def add_product(rows: Array, weight: Array, depth: int, num_columns: int, out: Array) -> None:
    """Add to each ``out[row, column]`` the product of a row and a row of the weight.

    Of both rows the first ``depth`` numbers count. Four rows by four columns are summed at a time,
    so that each number which is loaded is used four times; then come the rows and columns left.
    """
    num_rows = len(rows)
    whole_rows, whole_columns = num_rows - num_rows % 4, num_columns - num_columns % 4
    for c in range(0, whole_columns, 4):
        for r in range(0, whole_rows, 4):
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = _ZERO
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = _ZERO
            for k in range(depth):
                w0, w1, w2, w3 = weight[c, k], weight[c + 1, k], weight[c + 2, k], weight[c + 3, k]
                x0, x1, x2, x3 = rows[r, k], rows[r + 1, k], rows[r + 2, k], rows[r + 3, k]
                s00 += x0 * w0
                s01 += x0 * w1
                s02 += x0 * w2
                s03 += x0 * w3
                s10 += x1 * w0
                s11 += x1 * w1
                s12 += x1 * w2
                s13 += x1 * w3
                s20 += x2 * w0
                s21 += x2 * w1
                s22 += x2 * w2
                s23 += x2 * w3
                s30 += x3 * w0
                s31 += x3 * w1
                s32 += x3 * w2
                s33 += x3 * w3
            _add_four(out, r, c, s00, s01, s02, s03)
            _add_four(out, r + 1, c, s10, s11, s12, s13)
            _add_four(out, r + 2, c, s20, s21, s22, s23)
            _add_four(out, r + 3, c, s30, s31, s32, s33)
        for r in range(whole_rows, num_rows):
            s00 = s01 = s02 = s03 = _ZERO
            for k in range(depth):
                x0 = rows[r, k]
                s00 += x0 * weight[c, k]
                s01 += x0 * weight[c + 1, k]
                s02 += x0 * weight[c + 2, k]
                s03 += x0 * weight[c + 3, k]
            _add_four(out, r, c, s00, s01, s02, s03)
    for c in range(whole_columns, num_columns):
        for r in range(num_rows):
            total = _ZERO
            for k in range(depth):
                total += rows[r, k] * weight[c, k]
            out[r, c] += total


@compiled
def _add_four(
    out: Array, row: int, column: int, s0: float, s1: float, s2: float, s3: float
) -> None:
    out[row, column] += s0
    out[row, column + 1] += s1
    out[row, column + 2] += s2
    out[row, column + 3] += s3


@compiled
def product(rows: Array, weight: Array) -> Array:
    """Of each row with each row of the weight, ``[rows, out]``."""
    out = np.zeros((len(rows), len(weight)), dtype=np.float32)
    add_product(rows, weight, weight.shape[1], len(weight), out)
    return out


@compiled
def normed(rows: Array, weight: Array) -> Array:
    """Rows with unit mean square, by a weight."""
    out = np.empty_like(rows)
    num_rows, width = rows.shape
    for row in range(num_rows):
        total = _ZERO
        for k in range(width):
            total += rows[row, k] * rows[row, k]
        scale = _ONE / np.sqrt(total / np.float32(width) + _EPSILON)
        for k in range(width):
            out[row, k] = rows[row, k] * scale * weight[k]
    return out


@compiled
def softmax(scores: Array, num: int) -> None:
    """Turn the first ``num`` scores into shares, and the others into none.

    An exponential is a power of an exponential near 1, which a short series gives: only products
    and sums, so that the processor computes many at a time. Shares are right to five digits.
    """
    top = scores[0]
    for place in range(1, num):
        top = max(top, scores[place])
    total = _ZERO
    for place in range(num):
        x = max(scores[place] - top, _LEAST) * _PART
        power = _ONE + x * (_ONE + x * (_HALF + x * (_SIXTH + x * (_24TH + x * _120TH))))
        for _ in range(_HALVINGS):
            power *= power
        scores[place] = power
        total += power
    scale = _ONE / total
    for place in range(num):
        scores[place] *= scale
    for place in range(num, len(scores)):
        scores[place] = _ZERO


@compiled
def attend(
    queries: Array, keys: Array, values: Array, num_seen: int, num_more: int, at: int, out: Array
) -> None:
    """Leave what each query of one head finds in its row of ``out``, from column ``at`` on.

    The first query sees ``num_seen`` keys, and each later one ``num_more`` more. ``values`` are
    turned, ``[head, tokens]``.
    """
    num_queries, head = queries.shape
    for begin in range(0, num_queries, _QUERIES):
        end = min(begin + _QUERIES, num_queries)
        most = num_seen + num_more * (end - 1)
        shares = np.zeros((end - begin, most), dtype=np.float32)
        add_product(queries[begin:end], keys, head, most, shares)
        for row in range(end - begin):
            softmax(shares[row], num_seen + num_more * (begin + row))
        found = np.zeros((end - begin, head), dtype=np.float32)
        add_product(shares, values, most, head, found)
        for row in range(end - begin):
            for k in range(head):
                out[begin + row, at + k] = found[row, k]
