"""An open loop: each question is asked when it arrives, and its wait counts from then."""

from threading import Barrier

import pytest

from headstart_research.bench import open_loop
from headstart_research.bench.open_loop import Arrival, arrivals, ask_on_arrival


class Clock:
    """Time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(open_loop, "time", clock)
    return clock


def test_questions_are_asked_at_their_times_and_answers_come_in_their_order(clock):
    arriving = arrivals(2, 3, rate=2.0, seed=3)
    answers = ask_on_arrival(arriving, lambda arrival, at_s: (arrival.stream, arrival.index, at_s))
    assert answers == [(one.stream, one.index, 100.0 + one.at_s) for one in arriving]
    assert clock.now_s == pytest.approx(100.0 + arriving[-1].at_s)


def test_a_wait_counts_from_the_arrival_also_where_the_client_is_late(clock):
    # Whoever hands out the questions is busy for 5 s after the first.
    clock.monotonic = iter([100.0, 100.0, 105.0, 105.0]).__next__
    arriving = [Arrival(0.0, 0, 0), Arrival(1.0, 1, 0), Arrival(2.0, 0, 1)]
    assert ask_on_arrival(arriving, lambda _, arrived_s: arrived_s) == [100.0, 101.0, 102.0]
    assert clock.slept == [0.0, 0.0, 0.0]


def test_nobody_waits_for_another_ones_answer():
    everyone = Barrier(40, timeout=20)  # passed only if all 40 are under way at once
    arriving = [Arrival(0.0, stream, 0) for stream in range(40)]
    ask_on_arrival(arriving, lambda *_: everyone.wait())


def test_a_question_that_fails_is_not_lost_in_a_thread():
    def ask(arrival: Arrival, arrived_s: float) -> None:
        if arrival.stream == 1:
            raise RuntimeError("the engine is gone")

    with pytest.raises(RuntimeError, match="the engine is gone"):
        ask_on_arrival([Arrival(0.0, stream, 0) for stream in range(3)], ask)
