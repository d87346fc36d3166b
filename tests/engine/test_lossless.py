"""A seeded slice of the grid that `benchmarks/lossless.py` runs whole."""

import pytest
from tests.test_benchmarks import last_line_of

from headstart.lab.tiny import TinyEventGpt

pytestmark = pytest.mark.engine

SEED_OF_A_CASCADE = 6  # with prefix caching, in chunks of 256


@pytest.mark.timeout(1800)  # three engines and fifty clips, on whatever else a machine does
def test_no_setting_of_the_slice_changes_a_token(tiny_target, tmp_path):
    TinyEventGpt().save(tmp_path / "drafter")
    figures = last_line_of(
        "lossless.py",
        *("--target", tiny_target, "--drafter", tmp_path / "drafter"),
        *("--questions", 42, "--max-tokens", 24, "--settings", 1, "--seed", SEED_OF_A_CASCADE),
    )
    assert figures["differences"] == []
    assert figures["questions"] >= 42
    assert figures["accepted_tokens"] > 0
