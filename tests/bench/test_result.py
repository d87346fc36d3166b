"""Results: ratios over paired answers, what is written is what is read, regressions found."""

import dataclasses
import json

import pytest

from headstart.errors import BenchError
from headstart_research.bench.comparison import compare
from headstart_research.bench.intervals import ratio_of_medians
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.planning.costs import Costs
from tests.bench.played import COSTS, played_open_result, played_result


def test_a_ratio_is_above_one_where_the_second_is_faster():
    ratio = ratio_of_medians([2.0, 2.2, 1.8, 2.0], [1.0, 1.1, 0.9, 1.0])
    assert ratio.value == pytest.approx(2.0)
    assert ratio.low <= ratio.value <= ratio.high
    same = ratio_of_medians([1.0] * 5, [1.0] * 5)
    assert (same.low, same.value, same.high) == (1.0, 1.0, 1.0)
    with pytest.raises(BenchError, match="pairs"):
        ratio_of_medians([1.0], [])


def test_an_interval_is_wider_where_samples_scatter():
    steady = ratio_of_medians([2.0 + 0.01 * (i % 3) for i in range(30)], [1.0] * 30)
    loose = ratio_of_medians([2.0 + 0.5 * (i % 3) for i in range(30)], [1.0] * 30)
    assert loose.high - loose.low > steady.high - steady.low


def test_only_settled_answers_count_and_each_is_paired_with_its_own_baseline():
    result = played_result()
    pairs = result.pairs("fixed", "memory")
    assert len(pairs) == 2 * 10
    for bare, ours in pairs:
        assert (bare.method, bare.beside, ours.method) == (BARE, "memory", "memory")
        assert bare.pair == ours.pair
        assert bare.settled
        assert ours.settled


def test_the_summary_has_every_workload_and_method_with_its_figures():
    summary = played_result().summary()
    assert set(summary) == {"fixed", "streams-2"}
    assert set(summary["fixed"]) == {"none", "memory", "wrong"}
    memory, wrong = summary["fixed"]["memory"], summary["fixed"]["wrong"]
    assert memory["end_to_end"] > 1.5
    assert memory["throughput"] > 1.5
    assert memory["tokens_per_pass"] > 4
    assert wrong["end_to_end"] < 1
    assert wrong["tokens_per_pass"] == 1
    assert memory["first_token"] < 1.0  # a draft never brings the first token sooner
    assert memory["passes_per_answer"] < wrong["passes_per_answer"] / 3
    assert 4 < memory["accepted_with_prompt"] < memory["drafted_with_prompt"]
    assert wrong["accepted_with_prompt"] == 0
    assert memory["end_to_end_p95"] > 1.2 > 1 > wrong["end_to_end_p95"]
    assert memory["answers"] == 20
    assert memory["other_words"] == 0


@pytest.mark.parametrize("played", [played_result, played_open_result])
def test_what_is_written_is_what_is_read(tmp_path, played):
    result = played()
    result.write(tmp_path / "bench.json")
    read = BenchResult.read(tmp_path / "bench.json")
    assert read == result
    assert read.summary() == json.loads((tmp_path / "bench.json").read_text())["summary"]


@pytest.mark.parametrize("text", ["{}", "nonsense", '{"format": 99}', "[]"])
def test_what_is_no_result_is_refused(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(BenchError, match=r"no result|measure again"):
        BenchResult.read(tmp_path / "other.json")


def test_a_result_from_before_there_were_open_loads_is_read(tmp_path):
    played_result().write(tmp_path / "bench.json")
    written = json.loads((tmp_path / "bench.json").read_text())
    del written["loads"]
    (tmp_path / "bench.json").write_text(json.dumps(written))
    read = BenchResult.read(tmp_path / "bench.json")
    assert read == played_result()
    assert read.rates == {}


def test_the_loads_of_single_arrivals_are_found_by_rate():
    result = played_open_result()
    shuffled = dataclasses.replace(result, loads=result.loads[::-1])
    assert [load.rate for load in shuffled.random_loads("open-4", "memory")] == pytest.approx(
        [1.0, 1.4, 1.7, 1.9]
    )
    assert result.random_loads("open-4", "wrong") == result.random_loads("open-8", BARE) == []
    waits = [result.percentile_s(f"open-4 at {share}", BARE, 95) for share in (0.5, 0.7, 0.95)]
    assert waits == sorted(waits)
    beside = result.percentile_s("open-4 at 0.5", BARE, 95, "memory")
    assert beside != result.percentile_s("open-4 at 0.5", BARE, 95)


def test_answers_in_other_words_are_counted():
    result = played_result()
    changed = tuple(
        dataclasses.replace(sample, words="other") if sample.method == "wrong" else sample
        for sample in result.samples
    )
    summary = dataclasses.replace(result, samples=changed).summary()
    assert summary["fixed"]["wrong"]["other_words"] == 20
    assert summary["fixed"]["memory"]["other_words"] == 0


def test_a_run_that_was_interrupted_shows_what_it_has():
    result = played_result()
    last = max(number for number, sample in enumerate(result.samples) if sample.method == BARE)
    cut = dataclasses.replace(result, samples=result.samples[: last + 1])
    summary = cut.summary()  # the last method was not reached in the last round
    assert summary["fixed"] == result.summary()["fixed"]
    assert summary["streams-2"]["wrong"]["answers"] == 20
    only_bare = tuple(sample for sample in result.samples if sample.method == BARE)
    assert dataclasses.replace(result, samples=only_bare).summary() == {}


def test_a_regression_is_told_from_noise():
    slower = Costs(COSTS.prefill_s, COSTS.step_s, 4 * COSTS.verify_token_s, 0.01, 0.05)
    same = compare(played_result(0), played_result(1))
    assert not any(change.is_regression for change in same)
    worse = compare(played_result(0), played_result(1, costs=slower))
    assert {change.method for change in worse if change.is_regression} >= {"memory", "wrong"}
    better = compare(played_result(1, costs=slower), played_result(0))
    assert any(change.is_gain for change in better)
    with pytest.raises(BenchError, match="in common"):
        compare(played_result(workloads=("fixed",)), played_result(workloads=("other",)))
