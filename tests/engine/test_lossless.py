"""A seeded slice of the grid that `tests/soak/lossless.py` runs whole."""

import pytest

from headstart_lab.tiny import TinyEventGpt, TinyVideoLlava
from rig.forked_command import last_line_of

pytestmark = pytest.mark.engine

SEED_OF_A_CASCADE = 6  # with prefix caching, in chunks of 256


@pytest.mark.timeout(1800)  # three engines and fifty clips, on whatever else a machine does
def test_no_setting_of_the_slice_changes_a_token(tmp_path):
    TinyVideoLlava().save(tmp_path / "target")
    TinyEventGpt().save(tmp_path / "drafter")
    words = ["--pair", tmp_path, "--output", tmp_path]
    words += ["--questions", 42, "--max-tokens", 24, "--settings", 1, "--seed", SEED_OF_A_CASCADE]
    figures = last_line_of(["-m", "tests.soak.lossless", *map(str, words)], tmp_path / "log")
    assert figures["differences"] == []
    assert figures["questions"] >= 42
    assert figures["accepted_tokens"] > 0
