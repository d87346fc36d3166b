"""An engine's memory, seen, taken along and forgotten, with what was learnt of the drafters."""

import sys

import pytest

from headstart.drafters.memory import Memory
from headstart.drafters.ngram import Ngram
from headstart.drafters.remembered import Remembered
from headstart.speculation.board import TextVocabulary
from headstart.speculation.cascade import Cascade
from headstart.speculation.draft import Draft
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.earnings import MAX_TAKEN_TRIALS

LIE = (70, 71, 72, 73)


def cascade():
    return Cascade([Memory(), Ngram()], TextVocabulary(100))


def answer(cascade, stream, words, tenant="north"):
    request = cascade.begin(DraftRequest("asked", StreamKey(tenant, stream), "who?"))
    draft = cascade.propose(request, (), 16)
    cascade.finish(request, words)
    return draft


def rows_of(remembered, tenant):
    return remembered.streams(tenant, None, 100)


def test_streams_are_seen_by_their_tenant_only():
    engine = cascade()
    answer(engine, "front", [1, 2])
    answer(engine, "front", [1, 3])
    answer(engine, "back", [4])
    remembered = Remembered(engine)
    rows = {row["stream"]: row["answers"] for row in rows_of(remembered, "north")}
    assert rows == {"front": 2, "back": 1}
    assert rows_of(remembered, "south") == []
    assert all(0 < row["oldest_s"] <= row["newest_s"] for row in rows_of(remembered, "north"))
    assert remembered.export("south", "front") is None
    assert remembered.export("north", "side") is None


def test_streams_are_seen_page_by_page_whatever_is_said_meanwhile():
    engine = cascade()
    for number in range(25):
        answer(engine, f"camera {number:02}", [1, 2])
    remembered, after, seen = Remembered(engine), None, []
    while page := remembered.streams("north", after, 10):
        seen += [row["stream"] for row in page]
        after = seen[-1]
        answer(engine, "camera 20", [3])  # it is the most recently used one now
        remembered.forget("north", seen[0])
    assert seen == [f"camera {number:02}" for number in range(25)]


def test_a_page_costs_the_same_however_much_is_remembered():
    def calls(num_streams):
        engine = cascade()
        for number in range(num_streams):
            answer(engine, f"camera {number}", [1, 2])
        remembered, num_calls = Remembered(engine), 0

        def count(frame, event, called):
            nonlocal num_calls
            num_calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            rows = remembered.streams("north", "camera 1", 10)
        finally:
            sys.setprofile(None)
        assert len(rows) == 10
        return num_calls

    assert calls(20) == calls(1000) < 40


def test_what_the_planner_learnt_of_a_stream_comes_along():
    engine, other = cascade(), cascade()
    for number in range(30):
        answer(engine, "front", [number % 50, 60, 61])  # never what was said before
    front = StreamKey("north", "front")
    plain = Remembered(engine).export("north", "front")
    learnt = engine.earnings.accepted("memory", front, True)
    assert learnt < 0.2
    assert other.earnings.accepted("memory", front, True) == 1.0
    assert Remembered(other).take("north", "front", plain) == (30 * 4, 0)
    assert other.earnings.accepted("memory", front, True) < 0.5
    again = Remembered(other).export("north", "front")["earned"]["memory"]["0"]
    assert max(again[1]) <= MAX_TAKEN_TRIALS


def test_what_was_learnt_here_stays():
    engine, other = cascade(), cascade()
    for _ in range(5):
        answer(engine, "front", [1, 2, 3])
        answer(other, "front", [4, 5, 6])
    here = other.earnings.accepted("memory", StreamKey("north", "front"), True)
    plain = Remembered(engine).export("north", "front")
    Remembered(other).take("north", "front", plain)
    assert other.earnings.accepted("memory", StreamKey("north", "front"), True) == here
    assert answer(other, "front", [4, 5, 6]).tokens == (4, 5, 6)


def test_a_memory_of_lies_is_outweighed_after_some_answers():
    liar, engine = cascade(), cascade()
    for _ in range(200):
        answer(liar, "front", LIE)
    Remembered(engine).take("north", "front", Remembered(liar).export("north", "front"))
    front = StreamKey("north", "front")
    assert answer(engine, "front", [1, 2, 3]).tokens == LIE
    for number in range(8):
        answer(engine, "front", [1, 2, 3 + number])
    assert answer(engine, "front", [1, 2, 3]).tokens[:2] == (1, 2)
    assert engine.earnings.accepted("memory", front, True) > 0


def test_a_stream_and_a_tenant_are_forgotten_with_what_was_learnt_of_them():
    engine = cascade()
    for stream in ("front", "back"):
        for _ in range(3):
            answer(engine, stream, [1, 2, 3])
        answer(engine, "front", [7, 8], tenant="south")
    remembered, front = Remembered(engine), StreamKey("north", "front")
    assert engine.earnings.export(front)
    remembered.forget("north", "front")
    assert [row["stream"] for row in rows_of(remembered, "north")] == ["back"]
    assert engine.earnings.export(front) == {}
    assert engine.earnings.export(StreamKey("north", "back"))
    remembered.forget_tenant("north")
    assert rows_of(remembered, "north") == []
    assert engine.earnings.export(StreamKey("north", "back")) == {}
    assert [row["stream"] for row in rows_of(remembered, "south")] == ["front"]
    assert engine.earnings.export(StreamKey("south", "front"))


def test_a_posted_source_comes_along_too():
    engine = cascade()
    for _ in range(3):
        request = engine.begin(DraftRequest("asked", StreamKey("north", "front"), "who?"))
        engine.post(request, Draft((1, 2, 3), "drafter", 0.0))
        engine.propose(request, (), 16)
        engine.finish(request, [1, 2, 3])
    assert "drafter" in Remembered(engine).export("north", "front")["earned"]


class Quoting(Ngram):
    """Drafts from another drafter's memory, as a bridge does."""

    name = "quoting"

    def __init__(self, memory):
        super().__init__()
        self._memory = memory

    def propose(self, request_id, confirmed, max_tokens):
        return self._memory.propose(request_id, confirmed, max_tokens)


@pytest.mark.parametrize("method", ["begin", "finish"])
def test_what_a_memory_that_failed_holds_is_still_forgotten(method, monkeypatch):
    memory = Memory()
    engine = Cascade([memory, Quoting(memory)], TextVocabulary(100))
    for tenant in ("north", "south"):
        answer(engine, "front", [1, 2, 3], tenant)
    under_way = engine.begin(DraftRequest("under way", StreamKey("north", "front"), "who?"))
    with monkeypatch.context() as broken:
        broken.setattr(memory, method, lambda *_: 1 / 0)
        answer(engine, "front", [1, 2, 3])
    remembered = Remembered(engine)
    assert engine.propose(under_way, (), 8).source == "quoting"  # it reads what is there
    assert remembered.streams("north", None, 9)  # and so must whoever deletes it
    remembered.forget_tenant("north")
    assert not remembered.streams("north", None, 9)
    assert engine.propose(under_way, (), 8).tokens == ()
    assert remembered.streams("south", None, 9)
    assert answer(engine, "front", [1, 2, 3], "south").tokens == (1, 2, 3)


def test_a_memory_that_failed_keeps_no_request_alive(monkeypatch):
    memory = Memory()
    engine = Cascade([memory], TextVocabulary(100))
    request = engine.begin(DraftRequest("asked", StreamKey("north", "front"), "who?"))
    with monkeypatch.context() as broken:
        broken.setattr(memory, "propose", lambda *_: 1 / 0)
        engine.propose(request, (), 8)
    engine.finish(request, (1, 2))
    assert not memory._requests
    assert not Remembered(engine).streams("north", None, 9)  # nor did it learn
