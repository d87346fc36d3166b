"""Sampled answers keep their law where drafts of them are verified at all."""

import pytest

from tests.test_benchmarks import last_line_of

pytestmark = pytest.mark.engine


def test_with_the_kernel_put_right_drafts_leave_the_law_as_it_is():
    figures = last_line_of("sampling_law", "--samples", 6000, "--mended")
    assert figures["accepted_tokens"] > 300
    # Wrong temperatures give less than 1e-100 (--unguarded); the law itself hardly ever this.
    assert figures["p_value"] > 1e-6
