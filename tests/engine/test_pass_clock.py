"""Which passes are timed: those that only decode, one at a time. The clock is the test's."""

import pytest

pytest.importorskip("vllm")
from vllm.v1.core.sched.output import SchedulerOutput

from headstart.engine.pass_clock import PassClock, TimedPass


def step(scheduled: dict[str, int], drafts: dict[str, list[int]] | None = None) -> SchedulerOutput:
    made = SchedulerOutput.make_empty()
    made.num_scheduled_tokens = scheduled
    made.total_num_scheduled_tokens = sum(scheduled.values())
    made.scheduled_spec_decode_tokens = drafts or {}
    return made


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_pass_that_decodes_is_timed_from_drafting_to_its_words():
    clock = Clock()
    passes = PassClock(clock)
    passes.begin()
    clock.now_s += 0.001
    drafted = step({"a": 4, "b": 1}, {"a": [7, 8, 9]})
    passes.laid_out(drafted)
    clock.now_s += 0.020
    timed = passes.end(drafted)
    assert timed == TimedPass(3, pytest.approx(0.021))
    plain = step({"a": 1, "b": 1})
    passes.begin()
    passes.laid_out(plain)
    clock.now_s += 0.5
    assert passes.end(plain) == TimedPass(0, pytest.approx(0.5))


def test_prompts_and_empty_passes_are_left_out():
    passes = PassClock(Clock())
    for other in (step({"a": 300}), step({"a": 5, "b": 1}, {"a": [1, 2]}), step({})):
        passes.begin()
        passes.laid_out(other)
        assert passes.end(other) is None
    begun = step({"a": 1})
    begun.scheduled_new_reqs = [object()]
    passes.begin()
    passes.laid_out(begun)
    assert passes.end(begun) is None


def test_overlapping_passes_are_left_out_and_the_next_one_alone_is_timed():
    passes = PassClock(Clock())
    first, second, third = step({"a": 1}), step({"a": 1}), step({"a": 1})
    passes.begin()
    passes.laid_out(first)
    passes.begin()
    passes.laid_out(second)
    assert passes.end(first) is None
    assert passes.end(second) is None
    passes.begin()
    passes.laid_out(third)
    assert passes.end(third) is not None
