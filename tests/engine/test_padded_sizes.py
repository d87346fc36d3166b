import pytest

pytest.importorskip("vllm")
from vllm.config import CompilationConfig
from vllm.config.compilation import CUDAGraphMode

from headstart.engine.pass_clock import padded_sizes


def test_steps_are_padded_to_the_sizes_that_were_captured():
    config = CompilationConfig(
        cudagraph_mode=CUDAGraphMode.PIECEWISE, cudagraph_capture_sizes=[8, 1, 2, 4]
    )
    assert padded_sizes(config) == [1, 2, 4, 8]


def test_nothing_is_padded_without_graphs():
    config = CompilationConfig(cudagraph_mode=CUDAGraphMode.NONE, cudagraph_capture_sizes=[4, 8])
    assert padded_sizes(config) == ()
