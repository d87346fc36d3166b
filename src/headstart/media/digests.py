"""Content digests: one name for the same arrays, on every machine and however they arrived."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGEST_BYTES = 16


def digest_arrays(kind: str, *arrays: NDArray[Any]) -> str:
    """A hex digest of ``arrays`` in order; ``kind`` keeps unlike things with like bytes apart."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    state.update(kind.encode())
    for array in arrays:
        # Little-endian and C-ordered, so that the bytes depend on the values alone.
        canonical = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        state.update(f"|{canonical.dtype.str}{canonical.shape}|".encode())
        state.update(canonical.data if canonical.size else b"")
    return state.hexdigest()
