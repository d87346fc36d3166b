"""Costs of a live camera from a kept bench: they give back the waits that were measured."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from headstart.errors import PlanningError
from headstart_research.bench.live_calibration import live_calibration
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.planning.live import LiveWindow, live_forecasts

KEPT = (
    Path(__file__).parents[2]
    / "benchmarks"
    / "results"
    / "bench_lab-pair_live_cpu-2-cores_2026-11-17.json"
)


def test_the_calibration_gives_back_what_was_measured():
    result = BenchResult.read(KEPT)
    found = live_calibration(result)
    window = LiveWindow(8, 2.0, 2.0, found.feed_s)
    bare = live_forecasts(found.costs, window, found.num_tokens, found.later)["bare"]
    measured_s = fmean(sample.end_to_end_s for sample in result.settled("live", BARE))
    assert bare.answer.end_to_end_s == pytest.approx(measured_s, rel=0.06)
    fed_s = fmean(sample.first_token_s for sample in result.settled("live", "fed"))
    assert window.prompt_s(found.costs) == pytest.approx(fed_s, rel=0.25)
    assert found.num_prompt_tokens == 533
    assert sum(found.first.shares) > 3 * sum(found.later.shares)


def test_a_bench_without_live_methods_says_what_to_measure():
    result = BenchResult.read(KEPT)
    closed = replace(result, samples=tuple(s for s in result.samples if s.method != "fed"))
    with pytest.raises(PlanningError, match="--workload live --method fed"):
        live_calibration(closed)
