"""Every drafter on every workload, against figures counted by hand."""

import itertools
import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import EvaluationError
from headstart_research.bridge.pooling import DRAFTER, LAST
from headstart_research.evaluation import measured
from headstart_research.evaluation.asked_clips import AskedStreams
from headstart_research.evaluation.contenders import bridges, load_bridge, memories, registered
from headstart_research.evaluation.evaluation import Evaluation
from headstart_research.evaluation.known_answers import KnownAnswers
from headstart_research.evaluation.picture import drawn
from headstart_research.evaluation.workload import workloads
from tests.bench.played import played_result
from tests.evaluation.made_up import (
    FEATURES,
    TARGET,
    Seer,
    answers_of,
    bridge_directory,
    write_records,
)

QUESTIONS = ("What?", "Who?")
FIRST, SECOND = answers_of(1), answers_of(2)
STREAMS = {name: [dict.fromkeys(QUESTIONS, FIRST)] * 4 for name in ("a", "b")}
"""12 tokens each time: a new answer takes 12 passes, a known one a single pass."""


def evaluate(tmp_path, known=None, load=None, directories=(), also=(), bench=None, **options):
    options = {"streams": STREAMS, **options}
    held_out = AskedStreams.read(write_records(tmp_path / "records", **options))
    answers = KnownAnswers()
    if known is not None:
        folder = write_records(tmp_path / "known", known, source="lab", name="other ")
        answers = KnownAnswers.read(folder, held_out)
    done = []
    evaluation = Evaluation(
        workloads(held_out),
        [*memories(answers), *registered(also, answers)],
        bridges([bridge_directory(tmp_path / name) for name in directories], load, answers, TARGET),
        held_out.manifest.features,
        bench,
    )
    result = evaluation.run({"date": "today"}, done.append)
    assert sum(done) == evaluation.num_answers
    return result


def test_a_stream_learns_nothing_from_the_other_held_out_stream(tmp_path):
    figures = evaluate(tmp_path).summary["one-question"]["memory"]
    # Of each stream the first answer takes 12 passes, the three others a pass each.
    assert figures["tokens_per_pass"] == pytest.approx(48 / 15, abs=1e-3)
    assert figures["first_block"] == pytest.approx(3 * 12 / 4)
    assert figures["first_clips"] == pytest.approx(36 / 14, abs=1e-3)
    assert figures["new_scenes"] is None


def test_warm_memory_knows_other_streams_answers_from_the_start(tmp_path):
    known = {"elsewhere": [dict.fromkeys(QUESTIONS, FIRST)]}
    result = evaluate(tmp_path, known)
    assert result.summary["one-question"]["warm-memory"]["tokens_per_pass"] == 12
    assert result.summary["one-question"]["memory"]["tokens_per_pass"] == 3.2
    more = result.differences["one-question"]["warm-memory over memory"]
    assert more["tokens_per_pass"] == 8.8
    assert 0 <= more["answers_low"] < 8.8 < more["answers_high"]
    assert more["streams_low"] == more["streams_high"] == 8.8  # the two streams are equal


def test_new_scenes_are_counted_apart(tmp_path):
    clips = [dict.fromkeys(QUESTIONS, said) for said in (FIRST, FIRST, SECOND, SECOND, FIRST)]
    figures = evaluate(tmp_path, streams={"a": clips}).summary["one-question"]["memory"]
    # SECOND takes 12 passes; of FIRST, once it has begun, the rest is known: 2 passes.
    assert figures["new_scenes"] == pytest.approx(24 / 14, abs=1e-3)
    assert figures["streams_low"] is None


def test_a_draft_that_goes_wrong_survives_as_far_as_it_was_right(tmp_path):
    half = (*FIRST[:6], *SECOND[6:])
    streams = {"a": [{"What?": FIRST}, {"What?": half}, {"What?": half}]}
    figures = evaluate(tmp_path, streams=streams).summary["one-question"]["memory"]
    # First drafts: none, six of twelve, twelve of twelve.
    assert figures["survival_first"] == pytest.approx([2 / 3] * 6 + [1 / 3] * 6, abs=1e-3)
    assert figures["survival_later"] == []  # FIRST's rest was refused or not drafted


def test_a_draft_says_nothing_of_what_lies_beyond_the_answer(tmp_path):
    streams = {"a": [{"What?": FIRST}, {"What?": FIRST}, {"What?": FIRST[:4]}]}
    figures = evaluate(tmp_path, streams=streams).summary["one-question"]["memory"]
    # The last draft was right for all four tokens of its answer.
    assert figures["survival_first"] == pytest.approx([2 / 3] * 12, abs=1e-3)


def test_a_bridge_is_measured_with_each_selection_of_features(tmp_path, monkeypatch):
    built = []
    looks = itertools.count(step=1_000_000)  # a clock that shows a millisecond more at each look
    monkeypatch.setattr(measured, "time", SimpleNamespace(perf_counter_ns=lambda: next(looks)))

    def load(directory, memory):
        assert directory.name == "bridge"
        built.append(memory)
        return Seer(STREAMS, wants=(LAST,))

    result = evaluate(tmp_path, load=load, directories=["bridge"])
    rows = result.summary["in-turn"]
    found = {name: figures["tokens_per_pass"] for name, figures in rows.items()}
    assert found.pop("memory") > 1
    assert found == {"bridge-none": 1, "bridge-events": 1, "bridge-target": 12, "bridge-both": 12}
    more = result.differences["in-turn"]
    assert more["bridge-target over bridge-none"]["streams_low"] == 11
    assert more["bridge-events over bridge-none"]["answers_high"] == 0
    assert "bridge-target over warm-memory" not in more
    assert result.bridges == {"one-question": {}, "in-turn": {}}
    assert len(built) == len({id(memory) for memory in built}) == 2 * 4 * 2  # one for each stream
    times = [(figures["draft_ms_p50"], figures["draft_ms_p95"]) for figures in rows.values()]
    assert times == [(1, 1)] * 5


def test_of_several_bridges_each_counts_and_all_together(tmp_path):
    def load(directory, memory):
        return Seer(STREAMS, wants=(LAST,) if directory.name == "seed-1" else (DRAFTER,))

    known = {"elsewhere": [dict.fromkeys(QUESTIONS, SECOND)]}
    result = evaluate(tmp_path, known, load, ["seed-1", "seed-2"])
    rows = result.summary["one-question"]
    assert rows["bridge-target seed-1"]["tokens_per_pass"] == 12
    assert rows["bridge-target seed-2"]["tokens_per_pass"] == 1
    assert result.bridges["one-question"]["target"] == {"mean": 6.5, "lowest": 1, "highest": 12}
    assert "bridge-events seed-2 over warm-memory" in result.differences["one-question"]
    more = result.bridges["one-question"]["bridge-target over bridge-none"]
    assert (more["mean"], more["lowest"], more["highest"]) == (5.5, 0, 11)
    assert (more["streams_low"], more["streams_high"]) == (5.5, 5.5)  # every stream is alike
    assert "bridge-both over warm-memory" in result.bridges["one-question"]


def test_ratios_of_a_bench_stand_beside_the_drafters_and_workloads_that_it_measured(tmp_path):
    bench = played_result(workloads=("fixed",))
    result = evaluate(tmp_path, bench=bench)
    memory = result.summary["one-question"]["memory"]
    measured = bench.summary()["fixed"]["memory"]
    assert memory["end_to_end"] == measured["end_to_end"] > 1
    assert memory["end_to_end_high"] == measured["end_to_end_high"]
    assert "end_to_end" not in result.summary["in-turn"]["memory"]
    assert result.bench == bench.environment
    assert evaluate(tmp_path / "again").bench is None


def test_features_that_the_records_lack_are_not_shown(tmp_path):
    def load(directory, memory):
        return Seer(STREAMS)

    result = evaluate(tmp_path, load=load, directories=["bridge"], features=FEATURES[:2])
    assert list(result.summary["in-turn"]) == ["memory", "bridge-none", "bridge-target"]


def test_bridges_that_the_table_could_not_tell_apart_are_refused(tmp_path):
    with pytest.raises(EvaluationError, match="rename one"):
        bridges([tmp_path / "a" / "x", tmp_path / "b" / "x"], load_bridge, KnownAnswers(), TARGET)


def test_the_result_is_written_as_it_is(tmp_path):
    result = evaluate(tmp_path)
    result.write(tmp_path / "new" / "eval.json")
    read = json.loads((tmp_path / "new" / "eval.json").read_text())
    assert read == json.loads(json.dumps(result.as_json()))
    assert read["summary"]["in-turn"]["memory"]["tokens_per_pass"] > 1
    assert read["limits"] == {"first": 64, "later": 32}
    with pytest.raises(EvaluationError, match="name another file"):
        result.write(tmp_path)


def test_the_picture_shows_every_drafter_of_both_workloads(tmp_path):
    known = {"elsewhere": [dict.fromkeys(QUESTIONS, FIRST)]}
    result = evaluate(tmp_path, known)
    root = ElementTree.fromstring(drawn(result.workloads, result.summary))
    svg = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in root.iter(f"{svg}text")]
    assert words.count("memory") == words.count("warm-memory") == 2
    assert "2 questions in turn, one about each clip" in words
    dots = [float(dot.get("cx")) for dot in root.iter(f"{svg}circle")]
    assert len(dots) == 4
    assert dots[1] > dots[0]  # the warm one is further to the right
    width = float(root.get("viewBox").split()[2])
    assert all(0 < x < width for x in dots)


def test_a_further_drafter_is_compared_with_the_warmest_memory(tmp_path):
    assert "ngram over memory" in evaluate(tmp_path / "1", also=["ngram"]).differences["in-turn"]
    known = {"elsewhere": [dict.fromkeys(QUESTIONS, FIRST)]}
    more = evaluate(tmp_path / "2", known, also=["ngram"]).differences["in-turn"]
    assert list(more) == ["warm-memory over memory", "ngram over warm-memory"]
    assert more["ngram over warm-memory"]["tokens_per_pass"] == -11
