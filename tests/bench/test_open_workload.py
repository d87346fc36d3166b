"""An open workload on a real engine: every answer is there, and has the words of a closed loop."""

import pytest

from headstart import Clip, Headstart, Video
from headstart_research.bench.methods import Method
from headstart_research.bench.open_loop import Load
from headstart_research.bench.page import page
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.workloads import Workload, rotating
from tests.bench.test_workload_json import Borrowed
from tests.models.oracle import random_asked

QUESTION, MAX_TOKENS = "What has just been seen?", 12
ANSWERS, WARMUP, STREAMS = 4, 1, 3
LOADS = (Load(0.6), Load(0.9), Load(0.7, burst=2))


@pytest.mark.engine
def test_questions_that_arrive_by_themselves_are_answered_in_the_same_words(
    headstart: Headstart, rng
):
    clips = [
        Clip(video=Video.from_frames(asked.frames, fps=8)) for asked in random_asked(rng, ANSWERS)
    ]

    def camera(number: int, stream: int) -> list:
        return rotating(clips[stream:] + clips[:stream], [QUESTION])

    closed = Workload("streams-3", "", camera, MAX_TOKENS, STREAMS)
    opened = Workload("open-3", "", camera, MAX_TOKENS, STREAMS, loads=LOADS)
    run = Run(
        lambda _: Borrowed(headstart),  # type: ignore[arg-type, return-value]
        [Method(BARE, "alone"), Method("memory", "with drafts")],
        [closed, opened],
        BenchPlan(rounds=1, warmup=WARMUP),
    )
    run.run()
    result = BenchResult(
        {},
        tuple(run.samples),
        tuple(run.blocks),
        methods=dict.fromkeys((BARE, "memory"), ""),
        loads=run.loads,
    )
    words = {
        name: {s.pair: s.words for s in result.samples if s.workload == name}
        for name in ("streams-3", *result.rates)
    }
    assert list(result.rates) == ["open-3 at 0.6", "open-3 at 0.9", "open-3 in bursts"]
    for name in result.rates:
        assert words[name] == words["streams-3"]
        row = result.summary()[name]["memory"]
        assert row["answers"] == STREAMS * (ANSWERS - WARMUP)
        assert row["other_words"] == 0
    assert all(0 < s.first_token_s <= s.end_to_end_s for s in result.samples)
    assert "open-3, by load" in page(result)
