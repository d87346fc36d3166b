"""Which passes are timed, and what was in them. The clock is the test's."""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class New:
    req_id: str


def test_a_pass_is_timed_from_drafting_to_its_words():
    clock = Clock()
    passes = PassClock(clock)
    passes.begin()
    clock.now_s += 0.001
    drafted = step({"a": 4, "b": 1}, {"a": [7, 8, 9]})
    passes.laid_out(drafted)
    clock.now_s += 0.020
    timed = passes.end(drafted)
    assert timed == TimedPass(("a", "b"), 3, 0, pytest.approx(0.021))
    plain = step({"a": 1, "b": 1})
    passes.begin()
    passes.laid_out(plain)
    clock.now_s += 0.5
    assert passes.end(plain) == TimedPass(("a", "b"), 0, 0, pytest.approx(0.5))


def timed_as(passes: PassClock, made: SchedulerOutput) -> TimedPass | None:
    passes.begin()
    passes.laid_out(made)
    return passes.end(made)


def test_prompts_are_told_from_answers():
    passes = PassClock(Clock())
    assert timed_as(passes, step({"a": 300})) == TimedPass((), 0, 300, 0.0)
    # The end of a's prompt with a draft, and b, which is answering with one.
    mixed = step({"a": 5, "b": 2}, {"a": [1, 2], "b": [3]})
    assert timed_as(passes, mixed) == TimedPass(("b",), 3, 3, 0.0)
    # The last token of a prompt that is cached but for it.
    begun = step({"a": 1, "b": 1})
    begun.scheduled_new_reqs = [New("a")]
    assert timed_as(passes, begun) == TimedPass(("b",), 0, 1, 0.0)


def test_empty_passes_are_left_out():
    assert timed_as(PassClock(Clock()), step({})) is None


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
