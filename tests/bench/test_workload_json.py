"""The JSON workload: one schema for every engine, and answers that change as the scene does."""

import dataclasses
import json
import re

import pytest

from headstart import Clip, Headstart, Video
from headstart_lab.language.phrases import PLAIN
from headstart_lab.workloads import REPORT
from headstart_research.bench.methods import Method
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.run import BenchPlan, Run
from headstart_research.bench.sample import Sample
from headstart_research.bench.workloads import Workload, lab_workloads, rotating
from tests.bench.played import played_result
from tests.models.oracle import random_asked

COLOUR = {"type": "string", "pattern": "^(red|green|blue) and (red|green|blue)$"}
QUESTION = "Which colours?"
MAX_TOKENS = 48
SEEN = {
    "road": "We are on a two-lane forest road.",
    "traffic": "We can see a white motorcycle directly ahead.",
    "weather": "a cloudless day",
    "advice": "we have to wait",
}
"""As the lab's target reports a second of a held-out drive."""


class Borrowed:
    """The engine of the whole test session, which a bench must not close."""

    def __init__(self, engine: Headstart) -> None:
        self.session = engine.session

    def __enter__(self) -> "Borrowed":
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def test_only_the_json_workload_has_a_schema():
    schemas = {work.name: work.schema for work in lab_workloads(answers=4, max_tokens=96)}
    assert schemas.pop("json") is REPORT
    assert set(schemas.values()) == {None}


def test_the_schema_asks_for_what_the_lab_knows():
    fields = REPORT["properties"]
    assert list(fields) == REPORT["required"] == list(SEEN)
    for name in ("road", "traffic"):
        assert re.match(fields[name]["pattern"], SEEN[name])
        assert not re.match(fields[name]["pattern"], "G moving at an established district.")
    for name, facts in (("weather", [("weather", "is"), ("time", "is")]), ("advice", [])):
        assert SEEN[name] in fields[name]["enum"]
        for fact in facts:
            for value in fields[name]["enum"]:
                assert any(word in value for words in PLAIN[fact].values() for word in words)


@pytest.mark.engine
def test_the_grammar_follows_the_schema_in_the_labs_own_tokens(trained_pair):
    xgrammar = pytest.importorskip("xgrammar")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained_pair.target)
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
    grammar = xgrammar.GrammarCompiler(info).compile_json_schema(
        json.dumps(REPORT), any_whitespace=False, separators=(",", ":")
    )

    def follows(report: dict[str, str]) -> bool:
        return xgrammar.GrammarMatcher(grammar).accept_string(
            json.dumps(report, separators=(",", ":"))
        )

    assert follows(SEEN)
    assert not follows({**SEEN, "weather": "a cloudless noon"})
    assert not follows({**SEEN, "traffic": "Nothing."})
    assert not follows(dict(reversed(SEEN.items())))


@pytest.mark.engine
def test_every_engine_is_held_to_the_schema_of_the_workload(headstart, rng):
    clips = [Clip(video=Video.from_frames(asked.frames, fps=8)) for asked in random_asked(rng, 3)]
    items = rotating(clips, [QUESTION])
    work = Workload("json", "colours", lambda *_: items, MAX_TOKENS, schema=COLOUR)
    methods = [Method(BARE, "alone"), Method("memory", "with drafts")]
    run = Run(lambda _: Borrowed(headstart), methods, [work], BenchPlan(rounds=1, warmup=1))  # type: ignore[arg-type, return-value]
    run.run()
    place = {name: getattr(run.samples[0], name) for name in Sample.__slots__[:7]}
    for index, clip in enumerate(clips):
        said = headstart.ask(clip, QUESTION, max_tokens=MAX_TOKENS, schema=COLOUR)
        assert re.match(COLOUR["pattern"], json.loads(said.text))
        expected = Sample.of(said, 0.0, 1.0, **place).words
        words = {sample.method: sample.words for sample in run.samples if sample.index == index}
        assert words == {BARE: expected, "memory": expected}


def said_in_turn(words: str) -> BenchResult:
    """A played result whose streams say these words, a letter an answer."""
    result = played_result(workloads=("fixed", "streams-2"))
    samples = tuple(
        dataclasses.replace(sample, words=words[sample.index]) for sample in result.samples
    )
    return dataclasses.replace(result, samples=samples)


@pytest.mark.parametrize(
    ("words", "same", "distinct"),
    [
        ("a" * 12, 1.0, 1),
        ("abcdefghijkl", 0.0, 10),
        # The first two only warm up, but the third answer repeats the second.
        ("abbbcccddeee", 0.7, 4),
    ],
)
def test_the_summary_says_how_often_an_answer_repeats_the_one_before(words, same, distinct):
    for workload in ("fixed", "streams-2"):
        row = said_in_turn(words).summary()[workload]["memory"]
        assert row["same_as_before"] == pytest.approx(same)
        assert row["distinct_answers"] == distinct
        assert row["tokens_per_answer"] == pytest.approx(
            row["tokens_per_pass"] * row["passes_per_answer"], rel=1e-3
        )
