"""Sampled answers keep their law where drafts of them are verified at all."""

import pytest

pytest.importorskip("vllm")
from headstart.engine.withheld_drafts import verifies_sampled
from rig.forked_command import last_line_of
from rig.schedule_engine import scheduler

pytestmark = pytest.mark.engine


LAW = ("-m", "tests.soak.sampling_law")


def test_it_is_tried_when_an_engine_starts():
    verifies_sampled.cache_clear()
    scheduler(8)
    assert verifies_sampled.cache_info().misses == 1


def test_where_it_fails_a_benchmark_that_goes_without_it_shows_another_law(tmp_path):
    if verifies_sampled():
        pytest.skip("drafts of sampled answers are verified rightly here")
    figures = last_line_of([*LAW, "--samples", "2000", "--unguarded"], tmp_path / "log")
    assert figures["p_value"] < 1e-6


def test_with_the_kernel_put_right_drafts_leave_the_law_as_it_is(tmp_path):
    figures = last_line_of([*LAW, "--samples", "6000", "--mended"], tmp_path / "log")
    assert figures["accepted_tokens"] > 300
    # Wrong temperatures give less than 1e-100 (--unguarded); the law itself hardly ever this.
    assert figures["p_value"] > 1e-6
