"""A tenant sees, takes along, brings and forgets what a real server remembers of it."""

import time
from dataclasses import replace

import numpy as np
import pytest

from headstart.drafters.memory import PIECE_TOKENS, Memory
from headstart.drafters.stream_memory import question_mark
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_server.memory.seal import SnapshotSeal, tokenizer_name
from rig.servers import ask, asking, from_memory

pytestmark = pytest.mark.engine

MEMORY = "/v1/headstart/memory"
QUESTION = "What is remembered of this street?"


@pytest.fixture(scope="module")
def body(clips):
    return asking(clips / "street.mp4", QUESTION)


@pytest.fixture(scope="module")
def alone(north, body):
    """The answer of the target alone."""
    reply = north.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return text_of(reply.json())


@pytest.fixture(autouse=True)
def forgotten(north, south):
    """Nothing is remembered when a test begins."""
    for client in (north, south):
        assert client.delete(MEMORY, params={"all": "true"}).status_code == 200


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


def rows(client):
    reply = client.get(MEMORY)
    assert reply.status_code == 200, reply.text
    return {row["stream"]: row for row in reply.json()["data"]}


def export(client, stream):
    reply = client.get(f"{MEMORY}/export", params={"stream": stream})
    assert reply.status_code == 200, reply.text
    return reply.content


def bring(client, stream, sealed):
    return client.post(f"{MEMORY}/import", params={"stream": stream}, content=sealed)


def test_a_tenant_sees_its_streams_and_nobody_elses(north, south, body):
    ask(north, body, stream="a/b c")
    ask(north, body, stream="a/b c")
    ask(south, body, stream="yard")
    seen, of_south = rows(north), rows(south)
    assert "yard" not in seen
    assert seen["a/b c"]["answers"] == 2
    assert seen["a/b c"]["bytes"] > 0
    assert "yard" in of_south
    assert "a/b c" not in of_south
    assert north.get(MEMORY).json()["keep_days"] == 7.0


def test_streams_are_listed_page_by_page(north):
    names = [f"camera {number}" for number in range(5)]
    for name in names:
        said = {"model": "target", "prompt": "hi", "max_tokens": 1, "headstart": {"stream": name}}
        assert north.post("/v1/completions", json=said).status_code == 200
    seen, query = [], {"limit": 2}
    while query.get("cursor", "") is not None:
        page = north.get(MEMORY, params=query).json()
        seen.append([row["stream"] for row in page["data"]])
        query["cursor"] = page["cursor"]
    assert seen == [names[:2], names[2:4], names[4:]]
    for limit in ("0", "1001", "-1", "ten", "1.0"):
        assert north.get(MEMORY, params={"limit": limit}).status_code == 400


def test_a_large_memory_comes_in_by_pieces(north, body, memory_key, tiny_target):
    from transformers import AutoTokenizer

    length, mark = 512, question_mark(QUESTION)
    said = np.arange(8 * PIECE_TOKENS, dtype=np.int32) % 90 + 3
    said[::length] = mark
    num_answers = len(said) // length
    large = StreamSnapshot(said, (length,) * num_answers, (time.time(),) * num_answers)
    tokenizer = AutoTokenizer.from_pretrained(tiny_target)
    seal = SnapshotSeal([memory_key], tokenizer_name(tokenizer.get_vocab()))
    brought = bring(north, "large", seal.seal(StreamKey("north", "large"), large))
    assert brought.json()["answers"] == num_answers
    assert rows(north)["large"]["answers"] == num_answers
    drafted, _ = from_memory(ask(north, body, stream="large"))
    assert drafted > 0


def test_a_stream_taken_to_another_name_drafts_its_first_answer(north, body, alone):
    first = ask(north, body, stream="front")
    assert from_memory(first) == (0, 0)
    said = bring(north, "back", export(north, "front")).json()
    assert said == {"stream": "back", "from": "front", "answers": 1}
    seeded = ask(north, body, stream="back")
    assert text_of(seeded) == text_of(first) == alone
    assert from_memory(seeded)[1] > 0


def test_no_other_tenant_takes_it_in_and_no_byte_of_it_can_be_changed(north, south, body):
    ask(north, body, stream="front")
    sealed = export(north, "front")
    refused = bring(south, "front", sealed)
    assert refused.status_code == 400
    assert "another tenant's" in refused.json()["error"]["message"]
    assert rows(south) == {}
    forged = bring(north, "front", sealed[:-1] + bytes([sealed[-1] ^ 1]))
    assert forged.status_code == 400
    assert "seal" in forged.json()["error"]["message"]
    assert bring(north, "front", b"").status_code == 400
    assert south.get(f"{MEMORY}/export", params={"stream": "front"}).status_code == 404


def test_a_memory_full_of_lies_changes_no_word(north, body, alone, memory_key, tiny_target):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_target)
    lies, liar = Memory(), StreamKey("north", "liar")
    for number in range(300):
        lies.begin(DraftRequest("told", liar, QUESTION))
        lies.finish("told", [3 + (number + place) % 90 for place in range(24)])
    snapshot = lies.export(liar)
    always = {"0": [[100.0] * 9, [100.0] * 9]}
    sealed = SnapshotSeal([memory_key], tokenizer_name(tokenizer.get_vocab())).seal(
        liar,
        replace(snapshot, earned={"memory": always}),
    )
    assert bring(north, "liar", sealed).status_code == 200
    assert rows(north)["liar"]["answers"] == 300
    told = ask(north, body, stream="liar")
    assert text_of(told) == alone
    drafted, accepted = from_memory(told)
    assert drafted > accepted  # lies were verified, and refused
    for _ in range(3):
        assert text_of(ask(north, body, stream="liar")) == alone


def test_a_forgotten_stream_is_not_drafted_from(north, body, alone):
    for stream in ("front", "back"):
        ask(north, body, stream=stream)
    assert from_memory(ask(north, body, stream="front"))[1] > 0
    reply = north.delete(MEMORY, params={"stream": "front"})
    assert reply.json() == {"stream": "front", "deleted": True}
    assert list(rows(north)) == ["back"]
    answer = ask(north, body, stream="front")
    assert text_of(answer) == alone
    assert from_memory(answer) == (0, 0)
    assert north.delete(MEMORY, params={"all": "true"}).json() == {"all": True, "deleted": True}
    assert rows(north) == {}


def test_what_is_not_said_clearly_is_not_done(north, operator, body):
    ask(north, body, stream="front")
    assert north.delete(MEMORY).status_code == 400
    assert north.delete(MEMORY, params={"all": "yes"}).status_code == 400
    both = {"all": "true", "stream": "x" * 129}
    assert north.delete(MEMORY, params=both).status_code == 400
    assert north.get(f"{MEMORY}/export").status_code == 400
    assert operator.get(MEMORY).status_code == 403
    assert north.put(MEMORY).status_code == 405
    assert list(rows(north)) == ["front"]
