"""Pixels in bulk are the pixels of the processors that serve at inference."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from headstart_lab.training.pixels import frame_processor, pixels, slice_processor


@pytest.mark.parametrize("make", [frame_processor, slice_processor])
@pytest.mark.parametrize("shape", [(42, 42), (60, 84)], ids=["own size", "larger"])
def test_pixels_equal_the_processor_s(make, shape):
    pictures = np.random.default_rng(1).integers(0, 256, (3, *shape, 3), dtype=np.uint8)
    processor = make(42)
    (expected,) = processor(images=list(pictures), return_tensors="pt").values()
    found = pixels(pictures, 42, processor)
    assert found.dtype == torch.float32
    assert found.shape == (3, 3, 42, 42)
    torch.testing.assert_close(found, torch.as_tensor(expected).float(), atol=1e-3, rtol=0)
