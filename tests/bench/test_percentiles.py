"""Percentiles, against numpy's."""

import numpy as np
import pytest

from headstart_research.bench.percentiles import percentile


@pytest.mark.parametrize("percent", [50, 95, 99])
@pytest.mark.parametrize("count", [1, 2, 3, 20, 101, 144])
def test_percentiles_are_numpys(percent, count):
    values = np.random.default_rng(count).exponential(size=count).tolist()
    assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))
