"""In which numbers a step is computed: bf16 where the processor multiplies it, else float32.

A core with AMX multiplies bf16 faster than float32; one without has to imitate it, and is slower.
Weights and their sums are float32 either way.
"""

from contextlib import AbstractContextManager

import torch


def compute_dtype() -> torch.dtype:
    """What this processor is fast in."""
    return torch.bfloat16 if torch.cpu._is_amx_tile_supported() else torch.float32


def fast() -> AbstractContextManager[None]:
    """Products inside it are computed in `compute_dtype`."""
    dtype = compute_dtype()
    return torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16)
