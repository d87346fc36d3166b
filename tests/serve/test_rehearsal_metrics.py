"""What rehearsals took is on /metrics, each time that an answer reports it."""

from collections import Counter

from prometheus_client import REGISTRY

from headstart.engine.question import Question
from headstart.engine.request_record import Ending, RehearsalCounts, Report, RequestRecord
from headstart_server.metrics import CountedRehearsals

FIGURES = {
    ("headstart_rehearsals_total", "end", "whole"): 3,
    ("headstart_rehearsals_total", "end", "cut_off"): 1,
    ("headstart_rehearsed_tokens_total", None, None): 90,
    ("headstart_engine_seconds_total", "of", "rehearsals"): 0.5,
    ("headstart_engine_seconds_total", "of", "all else"): 2.0,
}


def figures():
    return {
        figure: REGISTRY.get_sample_value(figure[0], {figure[1]: figure[2]} if figure[1] else {})
        or 0.0
        for figure in FIGURES
    }


def test_what_an_answer_reports_of_rehearsals_is_counted_once():
    counts = RehearsalCounts(Counter({Ending.WHOLE: 3, Ending.CUT_OFF: 1}), 90, 0.5, 2.0)
    reported = Report.parse(Report((), (), 0, counts).params())
    assert reported is not None
    assert reported.rehearsals == counts
    listener, before = CountedRehearsals(), figures()
    record = RequestRecord("one", 0.0, 0.0)
    listener.answered(Question("What?"), record)  # an answer that vLLM alone gave
    assert figures() == before
    record.report = reported
    listener.answered(Question("What?"), record)
    assert {name: value - before[name] for name, value in figures().items()} == FIGURES
