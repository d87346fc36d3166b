"""A sealed memory: only an engine with the operator's key can have written it, for one tenant."""

from random import Random

import pytest

from headstart.drafters.memory import Memory
from headstart.speculation.drafter import StreamKey
from headstart_server.memory.seal import MAX_BYTES, SealError, SnapshotSeal, tokenizer_name
from tests.serve.memory.memories import FRONT, KEY, OTHER_KEY, snapshot

SEAL = SnapshotSeal([KEY], "tokenizer")


def test_what_is_sealed_here_is_read_by_whoever_has_the_key():
    sent = snapshot([1, 2, 3], [4, 5])
    opened = SnapshotSeal([KEY], "tokenizer").open(SEAL.seal(FRONT, sent), "north")
    assert opened.stream == FRONT
    assert opened.snapshot.answers() == sent.answers()
    assert opened.snapshot.said_at_s == pytest.approx(sent.said_at_s, abs=0.001)
    arrived = Memory()
    arrived.take(FRONT, opened.snapshot)
    assert arrived.num_answers == 2


def test_questions_do_not_travel():
    assert b"Who" not in SEAL.seal(FRONT, snapshot())


def test_a_new_key_is_used_while_the_old_one_still_opens():
    turned = SnapshotSeal([OTHER_KEY, KEY], "tokenizer")
    assert turned.open(SEAL.seal(FRONT, snapshot()), "north").stream == FRONT
    with pytest.raises(SealError, match="key_file"):
        SEAL.open(turned.seal(FRONT, snapshot()), "north")


@pytest.mark.parametrize(
    ("seal", "tenant", "why"),
    [
        (SnapshotSeal([OTHER_KEY], "tokenizer"), "north", "key_file"),
        (SnapshotSeal([KEY], "another"), "north", "tokenizer"),
        (SEAL, "south", "another tenant's"),
        (SEAL, "", "another tenant's"),
    ],
)
def test_it_is_opened_for_its_tenant_and_tokenizer_with_its_key_only(seal, tenant, why):
    with pytest.raises(SealError, match=why):
        seal.open(SEAL.seal(FRONT, snapshot()), tenant)


def test_no_byte_can_be_changed():
    data, rng = SEAL.seal(FRONT, snapshot()), Random(0)
    for place in [*range(60), *rng.sample(range(len(data)), 60)]:
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        with pytest.raises(SealError):
            SEAL.open(bytes(changed), "north")


@pytest.mark.parametrize("cut", [0, 1, 16, 20, 84, 85, 200])
def test_half_a_memory_is_none(cut):
    with pytest.raises(SealError):
        SEAL.open(SEAL.seal(FRONT, snapshot())[:cut], "north")


def test_a_later_format_is_told_apart_and_a_long_one_is_not_read():
    data = SEAL.seal(FRONT, snapshot())
    with pytest.raises(SealError, match="format"):
        SEAL.open(data.replace(b"headstart-memory 1", b"headstart-memory 2"), "north")
    with pytest.raises(SealError, match="bytes"):
        SEAL.open(bytes(MAX_BYTES + 1), "north")


def test_the_largest_memory_fits():
    memory = Memory(max_answers=4096)
    from headstart.speculation.drafter import DraftRequest

    for number in range(4096):
        memory.begin(DraftRequest("told", FRONT, "q"))
        memory.finish("told", [number] * 63)
    full = memory.export(FRONT)
    assert full.num_answers == 4096
    assert len(SEAL.seal(StreamKey("x" * 128, "y" * 128), full)) <= MAX_BYTES


def test_tokenizers_are_the_same_if_their_ids_are_the_same_words():
    assert tokenizer_name({"a": 1, "b": 2}) == tokenizer_name({"b": 2, "a": 1})
    assert tokenizer_name({"a": 1, "b": 2}) != tokenizer_name({"a": 2, "b": 1})
