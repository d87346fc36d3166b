"""Digests of arrays, equal on every machine for equal values."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGEST_BYTES = 16


def digest_arrays(kind: str, *arrays: NDArray[Any]) -> str:
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    state.update(kind.encode())
    for array in arrays:
        # Little-endian and C-ordered, so that the bytes depend on the values alone.
        canonical = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        state.update(f"|{canonical.dtype.str}{canonical.shape}|".encode())
        state.update(canonical.data if canonical.size else b"")
    return state.hexdigest()
