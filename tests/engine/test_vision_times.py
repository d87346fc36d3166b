"""Whose time in the tower is whose, and that nothing piles up."""

from headstart.engine.engine_client import MAX_VISION_TIMES, VisionTimes


class Registry:
    def __init__(self):
        self.times_read = 0

    def stat(self):
        self.times_read += 1


class Renderer:
    def __init__(self):
        self._mm_timing_registry = Registry()


def took(seconds):
    return {"encoder_forward_secs": seconds}


def test_the_slowest_worker_counts_and_a_time_is_taken_once():
    times = VisionTimes()
    workers = [{"ask-1-x": took(0.2), "ask-11-y": took(0.5)}, {"ask-1-x": took(0.3)}]
    times.note(workers, Renderer())
    assert times.take("ask-1-") == 0.3
    assert times.take("ask-1-") == 0
    assert times.take("ask-11-") == 0.5
    assert len(times) == 0


def test_times_nobody_asks_for_do_not_pile_up_here_or_in_vllm():
    times, renderer = VisionTimes(), Renderer()
    for number in range(MAX_VISION_TIMES + 5):
        times.note([{f"ask-{number}-x": took(0.1)}], renderer)
    assert len(times) == MAX_VISION_TIMES
    assert times.take("ask-4-") == 0  # the oldest went
    assert times.take("ask-5-") == 0.1
    assert renderer._mm_timing_registry.times_read == MAX_VISION_TIMES + 5


def test_a_renderer_that_keeps_nothing_is_left_alone():
    times = VisionTimes()
    times.note([{"ask-1-x": took(0.2)}], renderer=object())
    assert times.take("ask-1-") == 0.2
