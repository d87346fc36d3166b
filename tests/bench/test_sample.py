"""A sample is what the answer was: times from asking on, passes, drafts, both engines' stages."""

import json

from headstart.answers.answer import Answer
from headstart.answers.timeline import Span, Stage, Timeline
from headstart.speculation.draft import Draft, Verdict
from headstart_research.bench.sample import Sample

PLACE = {
    "workload": "fixed",
    "method": "cascade",
    "beside": "cascade",
    "round": 0,
    "stream": 1,
    "index": 3,
    "settled": True,
}


def answered() -> Answer:
    spans = [
        Span(Stage.PREPROCESS, 50.0, 50.1),
        Span(Stage.VISION, 50.1, 50.2),
        Span(Stage.PREFILL, 50.2, 50.5),
        Span(Stage.DECODE, 50.5, 51.0),
    ]
    return Answer(
        text="a b",
        token_ids=(5, 6, 7, 8, 9),
        finish_reason="stop",
        num_prompt_tokens=100,
        num_cached_tokens=0,
        timeline=Timeline.of(50.0, 51.1, spans),
        accepted_histogram=(2, 0, 0),
        verdicts=(
            Verdict(Draft((5, 6, 1, 2), "memory", 50.1), 2),
            Verdict(Draft((9,), "eventgpt", 50.6, 3), 0),
        ),
        drafter_timeline=Timeline.of(50.0, 50.4, [Span(Stage.DECODE, 50.2, 50.4)]),
    )


def test_an_answer_becomes_a_sample():
    sample = Sample.of(answered(), 49.9, 51.2, **PLACE)
    assert sample.end_to_end_s == 1.3
    assert sample.first_token_s == 0.6
    assert (sample.num_tokens, sample.num_passes) == (5, 3)
    assert sample.accepted == (2, 0, 0)
    assert sample.drafted == (4, 1)
    assert sample.first_drafted == 4
    assert sample.stage_s(Stage.PREFILL) == sample.spans[2][3] - sample.spans[2][2]
    assert sample.spans[-1] == ("drafter", "decode", 0.3, 0.5)
    assert sample.pair == (0, 1, 3)


def test_it_survives_being_written_down():
    sample = Sample.of(answered(), 49.9, 51.2, **PLACE)
    assert Sample.parse(json.loads(json.dumps(sample.as_json()))) == sample
