"""Goodput: the highest rate that was played at which nearly all answers came in time."""

import dataclasses

import pytest

from headstart_research.bench.result import BARE, BenchResult, PlayedLoad
from tests.bench.played import CAPACITY, played_open_result

WORKLOAD = "open-4"


def waiting(waits_s: dict[str, dict[float, float]]) -> BenchResult:
    """Every answer of a method waits so long at each rate; bursts are answered at once."""
    played = played_open_result()
    one = played.samples[-1]
    samples = [
        dataclasses.replace(
            one, workload=f"at {rate}", method=method, index=index, end_to_end_s=wait_s
        )
        for method, by_rate in waits_s.items()
        for rate, wait_s in by_rate.items()
        for index in range(5, 25)
    ]
    burst = [
        dataclasses.replace(one, workload="bursts", method=method, end_to_end_s=0.01)
        for method in waits_s
    ]
    loads = [PlayedLoad(f"at {rate}", WORKLOAD, 4.0, rate, 1) for rate in (1.0, 2.0, 3.0)]
    return dataclasses.replace(
        played,
        samples=(*samples, *burst),
        loads=(*loads, PlayedLoad("bursts", WORKLOAD, 4.0, 9.0, 4)),
    )


def test_the_limit_is_twice_what_bare_vllm_takes_at_the_lowest_rate():
    result = waiting({BARE: {3.0: 9.0, 1.0: 0.5, 2.0: 0.9}})
    assert result.limit_s(WORKLOAD) == pytest.approx(1.0)


def test_goodput_is_the_highest_rate_within_the_limit():
    result = waiting(
        {
            BARE: {1.0: 0.5, 2.0: 0.9, 3.0: 9.0},
            "memory": {1.0: 0.2, 2.0: 0.3, 3.0: 1.0},
            "wrong": {1.0: 2.0, 2.0: 3.0, 3.0: 4.0},
        }
    )
    assert result.goodput(WORKLOAD, BARE, 1.0) == 2.0
    assert result.goodput(WORKLOAD, "memory", 1.0) == 3.0  # bursts at 9 a second do not count
    assert result.goodput(WORKLOAD, "wrong", 1.0) is None


def test_an_engine_that_needs_less_of_its_time_has_the_higher_goodput():
    result = played_open_result()
    within_s = result.limit_s(WORKLOAD)
    bare, memory = (result.goodput(WORKLOAD, name, within_s) for name in (BARE, "memory"))
    assert bare is not None
    assert memory is not None
    assert bare < memory <= CAPACITY
