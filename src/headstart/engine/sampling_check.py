"""Whether this vLLM verifies drafts of sampled answers correctly.

Greedy answers are verified by comparing tokens, which works everywhere. For sampled ones vLLM
0.32 spreads each request's temperature over its drafted tokens; on a CPU its kernel writes them
into a copy, and what is sampled then follows another law than the target's. So it is tried once,
when an engine starts, on numbers small enough to check by eye.
"""

from functools import cache


@cache
def verifies_sampled() -> bool:
    """Whether drafts leave the law of sampled answers as it is."""
    import torch
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return True  # the kernel that goes wrong is the CPU's own
    from vllm.utils import cpu_triton_utils

    current_platform.import_kernels()
    spread = torch.zeros(3)
    temperatures, ends = torch.tensor([0.5, 2.0]), torch.tensor([2, 3], dtype=torch.int32)
    cpu_triton_utils._expand_kernel_impl(spread, temperatures, ends, 0, 0)
    return bool(torch.equal(spread, torch.tensor([0.5, 0.5, 2.0])))
