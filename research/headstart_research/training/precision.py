"""The number format of a training step: bf16 where the processor multiplies it, else float32.

A core with AMX multiplies bf16 faster than float32; a core without AMX emulates it, which is
slower. Weights and sums are float32 in both cases.
"""

from contextlib import AbstractContextManager

import torch


def compute_dtype() -> torch.dtype:
    """The format in which this processor multiplies fastest."""
    return torch.bfloat16 if torch.cpu._is_amx_tile_supported() else torch.float32


def fast() -> AbstractContextManager[None]:
    """A context in which torch computes products in `compute_dtype`."""
    dtype = compute_dtype()
    return torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16)
