"""To how many tokens vLLM pads a step: a token that only fills up a size it captured is free."""

from collections.abc import Sequence

from vllm.config import CompilationConfig
from vllm.config.compilation import CUDAGraphMode


def padded_sizes(config: CompilationConfig) -> Sequence[int]:
    """The sizes that steps are padded to, in order; none where nothing is captured."""
    if config.cudagraph_mode in (None, CUDAGraphMode.NONE):
        return ()
    return sorted(config.cudagraph_capture_sizes or ())
