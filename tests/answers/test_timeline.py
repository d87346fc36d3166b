"""Spans, and what no span accounts for."""

import pytest

from headstart.answers.timeline import Span, Stage, Timeline


def test_time_is_summed_by_stage_and_the_rest_is_said():
    timeline = Timeline.of(
        0.0,
        10.0,
        [
            Span(Stage.DECODE, 6, 10),
            Span(Stage.LOAD, 0, 1),
            Span(Stage.PREFILL, 2, 3),
            Span(Stage.PREFILL, 4, 5),
        ],
    )
    assert timeline.spans[0].stage is Stage.LOAD
    assert timeline.duration_s(Stage.PREFILL) == 2
    assert timeline.duration_s(Stage.VISION) == 0
    assert timeline.total_s == 10
    assert timeline.between_stages_s == 3


def test_a_span_cannot_end_before_it_starts():
    with pytest.raises(ValueError, match="before it starts"):
        Span(Stage.LOAD, 2.0, 1.0)
