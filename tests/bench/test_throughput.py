"""Throughput of a closed loop: only while all streams are busy, and parts of answers in part."""

import pytest

from headstart.answers.answer import Answer
from headstart.answers.timeline import Timeline
from headstart_research.bench.asker import Asked
from headstart_research.bench.throughput import Throughput


def answered(*times: tuple[float, float, int]) -> list[Asked]:
    """Answers from one time to another, with so many tokens."""
    return [
        Asked(
            Answer("", (1,) * tokens, "stop", 9, 0, Timeline.of(start, stop, []), (0,) * tokens),
            start,
            stop,
        )
        for start, stop, tokens in times
    ]


def test_a_single_stream_counts_whole():
    stream = answered((10.0, 12.0, 30), (12.0, 13.0, 20))
    assert Throughput.of([stream], 10.0) == Throughput(3.0, 2, 50)


def test_time_in_which_a_stream_has_no_more_to_ask_is_left_out():
    short = answered((0.0, 1.0, 10), (1.0, 2.0, 10))
    long = answered((0.0, 1.0, 10), (1.0, 5.0, 40), (5.0, 9.0, 40))
    found = Throughput.of([short, long], 0.0)
    # Of the longer stream a second answer of four seconds had one of them, and the third none.
    assert found.seconds == 2.0
    assert found.answers == pytest.approx(2 + 1 + 0.25)
    assert found.tokens == pytest.approx(20 + 10 + 10)


def test_a_live_camera_counts_the_time_in_which_its_frames_arrive():
    assert Throughput.of([answered((0.9, 1.2, 12), (1.9, 2.2, 12))], 0.0).seconds == 2.2
