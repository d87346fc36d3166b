"""Logged answers as records: one tenant's, in order."""

import json

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import CollectError
from headstart_research.collect.collection import Collection
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import collected
from tests.collect.silent import Silent
from tests.collect.test_manifest import write_model

ROWS = [
    {"tenant": "north", "stream": "a", "question": "What?", "target_tokens": [1, 2]},
    {"tenant": "south", "stream": "a", "question": "Secret?", "target_tokens": [9]},
    {"tenant": "north", "stream": "b", "question": "What?", "target_tokens": [3]},
    {"stream": "a", "question": "Nobody's?", "target_tokens": [8]},
    {"tenant": "north", "stream": "a", "question": "Who?", "target_tokens": [4], "wait_s": 1.5},
]


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path / "model").name


def write_log(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def places(folder):
    return [(r.stream, r.index, r.question, r.answer_ids) for r in collected(folder)]


def test_only_the_tenants_answers_are_taken_each_stream_in_order(tmp_path, model):
    log, out = write_log(tmp_path / "log.jsonl", ROWS), tmp_path / "out"
    counts = Collection(out).collect_log(log, "north", model, Silent())
    assert counts.in_all == counts.new == 3
    assert places(out) == [
        ("a", 0, "What?", (1, 2)),
        ("b", 0, "What?", (3,)),
        ("a", 1, "Who?", (4,)),
    ]
    assert b"Secret" not in b"".join(file.read_bytes() for file in out.rglob("*") if file.is_file())


def test_rows_without_a_tenant_are_taken_by_the_empty_name(tmp_path, model):
    log, out = write_log(tmp_path / "log.jsonl", ROWS), tmp_path / "out"
    Collection(out).collect_log(log, "", model, Silent())
    assert places(out) == [("a", 0, "Nobody's?", (8,))]


def test_a_log_that_grew_brings_its_new_rows(tmp_path, model):
    log, out = write_log(tmp_path / "log.jsonl", ROWS), tmp_path / "out"
    Collection(out).collect_log(log, "north", model, Silent())
    write_log(log, [*ROWS, {**ROWS[0], "target_tokens": [5]}])
    assert Collection(out).collect_log(log, "north", model, Silent()).new == 1
    assert places(out)[-1] == ("a", 2, "What?", (5,))


def test_shards_of_a_log_are_the_log(tmp_path, model):
    log, out = write_log(tmp_path / "log.jsonl", ROWS), tmp_path / "out"
    for number in (1, 2):
        Collection(out, Shard(number, 2)).collect_log(log, "north", model, Silent())
    assert len(places(out)) == 3


def test_a_tenant_without_answers_is_named(tmp_path, model):
    log = write_log(tmp_path / "log.jsonl", ROWS)
    with pytest.raises(CollectError, match="no answer of the tenant 'west'"):
        Collection(tmp_path / "out").collect_log(log, "west", model, Silent())


@pytest.mark.parametrize(
    "row",
    [
        '{"question": "What?"}',
        '{"question": "What?", "target_tokens": []}',
        '{"question": "What?", "target_tokens": [1.5]}',
        '{"question": "What?", "target_tokens": [-1]}',
        '{"question": "What?", "target_text": "A car"}',
        '{"target_tokens": [1]}',
        "[]",
        "{",
    ],
)
def test_a_row_that_cannot_be_taken_is_named_by_its_line(tmp_path, model, row):
    log = tmp_path / "log.jsonl"
    log.write_text('{"question": "What?", "target_tokens": [1]}\n\n' + row + "\n")
    with pytest.raises(CollectError, match="line 3"):
        Collection(tmp_path / "out").collect_log(log, "", model, Silent())
