"""A large memory comes in piece by piece: no call takes the engine's thread for long."""

import gc
import time
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest

from headstart.drafters.memory import PIECE_TOKENS, Memory
from headstart.drafters.remembered import Remembered
from headstart.drafters.stream_memory import StreamMemory, quote
from headstart.drafters.stream_snapshot import MAX_TOKENS, StreamSnapshot
from headstart.speculation.board import TextVocabulary
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafter import DraftRequest, StreamKey

FRONT, BACK = StreamKey("north", "front"), StreamKey("north", "back")
LENGTH = 512
MAX_CALL_S = 0.08
"""Of the engine's thread. A piece takes some 5 ms of it; all at once took 250 and more."""


@pytest.fixture(autouse=True)
def uncollected():
    """The collector's pauses are not the memory's."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@contextmanager
def spent():
    """The processor time of the block, s."""
    seconds, began_s = [], time.thread_time()
    yield seconds
    seconds.append(time.thread_time() - began_s)


def large(seed=0, num_tokens=MAX_TOKENS):
    said = np.random.default_rng(seed).integers(0, 30_000, num_tokens).astype(np.int32)
    num_answers = num_tokens // LENGTH
    said[::LENGTH] = -np.arange(1, num_answers + 1)
    return StreamSnapshot(said, (LENGTH,) * num_answers, (1000.0,) * num_answers)


def tell(memory, stream, answer, question="who?"):
    memory.begin(DraftRequest("told", stream, question))
    memory.finish("told", answer)


def asked(memory, stream, confirmed=(), question="who?"):
    memory.begin(DraftRequest("asked", stream, question))
    try:
        return list(memory.propose("asked", confirmed, 64))
    finally:
        memory.finish("asked", ())


def test_no_call_of_the_largest_memory_takes_long():
    memory = Memory()
    tell(memory, BACK, [1, 2, 3])
    remembered = Remembered(Cascade([memory], TextVocabulary(30_000)))
    plain, calls_s = large().plain(), []
    with spent() as seconds:
        num_tokens, num_left = remembered.take("north", "front", plain)
    calls_s += seconds
    while num_left:
        with spent() as seconds:
            num_left = remembered.take_on("north", "front")
        calls_s += seconds
    assert num_tokens == MAX_TOKENS
    assert len(calls_s) >= MAX_TOKENS // PIECE_TOKENS
    assert max(calls_s) < MAX_CALL_S
    (_, count), *_ = memory.counts("north", "back", 1)
    assert count.num_answers == MAX_TOKENS // LENGTH
    said = large().said
    for place in (5 * LENGTH, MAX_TOKENS - LENGTH):
        assert asked(memory, FRONT, said[place + 1 : place + 9].tolist())[:50] == (
            said[place + 9 : place + 59].tolist()
        )


def test_an_answer_that_makes_the_tables_grow_takes_no_longer_than_others():
    memory, calls_s = StreamMemory(max_answers=10_000), []
    given = large(1)
    for part in given.parts(LENGTH):
        with spent() as seconds:
            memory.extend(part.said, part.lengths, part.said_at_s)
        calls_s += seconds
    assert memory.num_learnt == MAX_TOKENS // LENGTH
    assert max(calls_s) < MAX_CALL_S


def test_tables_that_grew_propose_what_new_ones_do():
    rng, given = Random(3), large(2, num_tokens=1 << 16)
    grown, anew = StreamMemory(10_000), StreamMemory(10_000)
    words = given.said % 50  # so that every context is often there
    words[::LENGTH] = given.said[::LENGTH]
    for memory in (grown, anew):
        for part in StreamSnapshot(words, given.lengths, given.said_at_s).parts(LENGTH):
            memory.extend(part.said, part.lengths, part.said_at_s)
    anew.compact()
    for _ in range(300):
        confirmed = rng.choices(range(50), k=rng.randrange(1, 12))
        proposed = quote((grown,), "q", confirmed, 32)
        assert proposed
        assert proposed == quote((anew,), "q", confirmed, 32)


def test_forgetting_costs_neither_the_call_nor_the_next_answer():
    memory = Memory()
    memory.take(FRONT, large())
    tell(memory, BACK, [1, 2, 3])
    for stream in (StreamKey("north", "never there"), StreamKey("north", "side")):
        tell(memory, StreamKey("north", "side"), [4])
        with spent() as seconds:
            memory.forget(stream)
            tell(memory, FRONT, [5])
        assert seconds[0] < MAX_CALL_S


def test_a_stream_that_was_never_there_is_forgotten_without_loss():
    memory = Memory()
    tell(memory, FRONT, [1, 2, 3])
    tell(memory, BACK, [4, 5, 6], question="where?")
    tell(memory, FRONT, [7, 8], question="when?")
    memory.forget(StreamKey("north", "never there"))
    side = StreamKey("north", "side")
    assert asked(memory, side, question="where?") == [4, 5, 6]
    assert asked(memory, side, question="when?") == [7, 8]


def test_a_stream_that_had_to_make_room_is_forgotten_of_the_site_too():
    memory = Memory(max_streams=2)
    for number, name in enumerate(("one", "two", "three")):
        tell(memory, StreamKey("north", name), [10 + number, 20 + number])
    new = StreamKey("north", "new")
    assert asked(memory, new, [11]) == [21]
    memory.forget(StreamKey("north", "one"))  # no stream any more, but its words may be left
    assert asked(memory, new, [10]) == []
    assert asked(memory, new, [12]) == [22]


def test_what_is_said_while_a_memory_comes_in_is_kept_and_is_newer():
    memory = Memory()
    tell(memory, FRONT, [1, 2, 3])
    given = large(4, num_tokens=4 * PIECE_TOKENS)
    assert memory.begin_taking(FRONT, given) == 4 * PIECE_TOKENS + 4
    assert memory.take_on(FRONT)
    tell(memory, FRONT, [7, 8, 9])
    assert asked(memory, FRONT) == [7, 8, 9]  # it goes on with what it knows
    while memory.take_on(FRONT):
        pass
    assert memory.num_answers == given.num_answers + 2
    assert asked(memory, FRONT) == [7, 8, 9]
    assert asked(memory, FRONT, [1]) == [2, 3]
    words = given.said[1:9].tolist()
    assert asked(memory, FRONT, words)[:20] == given.said[9:29].tolist()


@pytest.mark.parametrize("forget", ["forget", "forget_tenant"])
def test_what_is_forgotten_while_it_comes_in_does_not_come_back(forget):
    memory = Memory()
    tell(memory, FRONT, [1, 2, 3])
    memory.begin_taking(FRONT, large(5, num_tokens=4 * PIECE_TOKENS))
    assert memory.take_on(FRONT)
    getattr(memory, forget)(FRONT if forget == "forget" else "north")
    assert memory.take_on(FRONT) == 0
    assert memory.num_answers == memory.num_bytes == 0
    assert asked(memory, FRONT) == []
