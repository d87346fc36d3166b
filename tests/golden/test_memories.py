"""Memories that servers have stored are read, and what is written is what they can read."""

import math
import shutil

import pytest

from headstart.drafters.remembered import Remembered
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.speculation.drafter import DraftRequest
from headstart_server.memory.store import FileStore
from tests.golden.memories import (
    BACK,
    FRONT,
    KEPT,
    PLAIN,
    SEALED,
    SECONDS,
    STORE,
    TOLD,
    WHAT,
    WHO,
    YARD,
    from_json,
    new_cascade,
    seal,
    to_json,
    write,
)


def answers_of(stream):
    return [list(answer) for told, _, answer in TOLD if told == stream]


def said_in(snapshot):
    """The answers of a snapshot, each without its question's mark."""
    tokens, found = snapshot.said.tolist(), []
    for length in snapshot.lengths:
        mark, *answer = tokens[:length]
        assert mark < 0
        found.append(answer)
        del tokens[:length]
    return found


def drafted(cascade, stream, question):
    request = cascade.begin(DraftRequest("asked", stream, question))
    try:
        return list(cascade.propose(request, (), 64).tokens)
    finally:
        cascade.finish(request, ())


@pytest.fixture
def store(tmp_path):
    shutil.copytree(STORE, tmp_path / "store")
    return FileStore(tmp_path / "store", keep_s=math.inf)


def test_a_plain_snapshot_holds_what_was_said():
    snapshot = StreamSnapshot.parse(from_json(PLAIN.read_text()))
    assert said_in(snapshot) == answers_of(FRONT)
    assert list(snapshot.said_at_s) == SECONDS[FRONT]
    hits, trials = snapshot.earned["memory"]["0"]
    assert 0 < sum(hits) < sum(trials), "of what memory drafted some was right"


def test_an_engine_drafts_from_it():
    cascade = new_cascade()
    remembered = Remembered(cascade)
    plain = from_json(PLAIN.read_text())
    assert remembered.take(FRONT.tenant, FRONT.stream, plain) == (len(plain["said"]) // 4, 0)
    *_, who = (answer for stream, asked, answer in TOLD if (stream, asked) == (FRONT, WHO))
    *_, what = (answer for stream, asked, answer in TOLD if (stream, asked) == (FRONT, WHAT))
    assert drafted(cascade, FRONT, WHO)[: len(who)] == list(who)
    assert drafted(cascade, FRONT, WHAT)[: len(what)] == list(what)
    kept = remembered.export(FRONT.tenant, FRONT.stream)
    assert kept is not None
    assert to_json({**kept, "earned": {}}) == to_json({**plain, "earned": {}})
    assert kept["earned"].keys() == plain["earned"].keys()


def test_a_sealed_memory_is_opened():
    opened = seal().open(SEALED.read_bytes(), FRONT.tenant)
    assert (opened.stream, opened.sealed_at_s) == (FRONT, 1000.0 + len(TOLD))
    plain = from_json(PLAIN.read_text())
    assert opened.snapshot.plain() == StreamSnapshot.parse(plain).plain()


def test_a_store_is_read(store):
    assert [each.name for each in store.streams("south")] == [YARD.stream]
    assert {each.name for each in store.streams("north")} == {FRONT.stream, BACK.stream}
    for stream in (FRONT, BACK, YARD):
        opened = seal().open(store.get(stream), stream.tenant)
        assert opened.stream == stream
        assert said_in(opened.snapshot) == answers_of(stream)
        assert list(opened.snapshot.said_at_s) == SECONDS[stream]
    assert store.get(FRONT) == SEALED.read_bytes()
    store.forget(YARD)
    assert store.streams("south") == []


def test_what_is_written_today_are_the_same_bytes(tmp_path):
    write(tmp_path)
    known = {path.relative_to(KEPT): path.read_bytes() for path in KEPT.rglob("*.*")}
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert known.keys() == made.keys()
    assert len(known) == 5
    for path in known:
        assert made[path] == known[path], f"{path}; if it is meant: python -m tests.golden.memories"
