"""A stream's memory leaves an engine and comes into another; nothing malformed comes in."""

from random import Random

import numpy as np
import pytest

from headstart.drafters.memory import Memory
from headstart.drafters.stream_memory import question_mark
from headstart.drafters.stream_snapshot import MAX_ANSWERS, MAX_TOKENS, StreamSnapshot
from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest, StreamKey

FRONT = StreamKey("north", "front")
QUESTIONS = ("what is in sight?", "who is there?", "is the road free?")


def tell(memory, stream, question, answer):
    memory.begin(DraftRequest("told", stream, question))
    memory.finish("told", answer)


def asked(memory, stream, question, confirmed=()):
    memory.begin(DraftRequest("asked", stream, question))
    try:
        return list(memory.propose("asked", confirmed, 64))
    finally:
        memory.finish("asked", ())


def taught(num_answers=40, seed=0, now_s=1000.0):
    rng = Random(seed)
    memory = Memory(clock=lambda: now_s)
    for number in range(num_answers):
        answer = rng.choices(range(20), k=rng.randint(1, 30))
        tell(memory, FRONT, QUESTIONS[number % 3], answer)
    return memory


def plain(**changed):
    said = np.array([question_mark("q"), 5, 6, question_mark("q"), 7], dtype="<i4")
    usual = {"said": said.tobytes(), "lengths": [3, 2], "said_at_s": [1.0, 2.0], "earned": {}}
    return {**usual, **changed}


def test_a_question_has_the_same_mark_in_every_process():
    # The value itself: memories of one version must be understood by the next.
    assert question_mark("What is happening?") == -538_966_822
    assert question_mark("\ud800") < 0


def test_a_stream_drafts_the_same_in_the_engine_it_came_to():
    memory = taught()
    travelled = StreamSnapshot.parse(memory.export(FRONT).plain())
    arrived = Memory()
    arrived.take(FRONT, travelled)
    rng = Random(1)
    for question in QUESTIONS:
        for _ in range(50):
            confirmed = rng.choices(range(20), k=rng.randint(0, 6))
            expected = asked(memory, FRONT, question, confirmed)
            assert asked(arrived, FRONT, question, confirmed) == expected
    assert asked(arrived, FRONT, QUESTIONS[0])
    assert arrived.num_answers == memory.num_answers == 40


def test_what_was_said_here_meanwhile_is_newer():
    arrived = Memory()
    tell(arrived, FRONT, "who?", [9, 8])
    memory = Memory()
    tell(memory, FRONT, "who?", [1, 2, 3])
    tell(memory, FRONT, "what?", [4, 5])
    arrived.take(FRONT, memory.export(FRONT))
    assert asked(arrived, FRONT, "who?") == [9, 8]
    assert asked(arrived, FRONT, "what?") == [4, 5]


def test_the_same_answers_twice_are_remembered_once():
    memory = taught(7)
    snapshot = memory.export(FRONT)
    memory.take(FRONT, snapshot)
    memory.take(FRONT, snapshot)
    assert memory.num_answers == 7
    assert memory.export(FRONT).answers() == snapshot.answers()


def test_a_camera_is_seeded_from_another_of_its_owner_and_no_other_tenant_hears_of_it():
    memory = Memory(warm=False)
    tell(memory, FRONT, "who?", [1, 2, 3])
    back = StreamKey("north", "back")
    assert asked(memory, back, "who?") == []
    memory.take(back, memory.export(FRONT))
    assert asked(memory, back, "who?") == [1, 2, 3]
    assert asked(memory, StreamKey("south", "back"), "who?") == []


@pytest.mark.parametrize("warm", [False, True])
def test_the_limits_of_a_tenant_hold_for_what_comes_in(warm):
    memory = Memory(max_tenant_bytes=200_000, max_streams=8, warm=warm)
    snapshot = taught(300).export(FRONT)
    tell(memory, StreamKey("quiet", "camera"), "who?", [1, 2, 3])
    for number in range(30):
        memory.take(StreamKey("loud", f"camera {number}"), snapshot)
        assert memory.num_bytes < 260_000
    assert asked(memory, StreamKey("quiet", "camera"), "who?") == [1, 2, 3]


def test_a_snapshot_is_bounded_and_holds_the_newest():
    memory = Memory(max_answers=2000)
    for number in range(600):
        tell(memory, FRONT, "q", [number] * 1024)
    snapshot = memory.export(FRONT)
    assert len(snapshot.said) <= MAX_TOKENS
    assert len(snapshot.plain()["said"]) <= 1 << 20
    assert snapshot.said[-1] == 599
    assert snapshot.num_answers == MAX_TOKENS // 1025


def test_what_was_said_before_a_time_is_forgotten_wherever_it_came_from():
    now = [1000.0]
    memory = Memory(clock=lambda: now[0])
    tell(memory, FRONT, "who?", [1, 2, 3])
    tell(memory, StreamKey("north", "back"), "who?", [4, 5, 6])
    snapshot = memory.export(FRONT)
    now[0] = 2000.0
    other = Memory(clock=lambda: now[0])
    tell(other, StreamKey("north", "side"), "what?", [7, 8])
    other.take(FRONT, snapshot)
    assert asked(other, FRONT, "who?") == [1, 2, 3]
    other.forget_before(1500.0)
    assert asked(other, FRONT, "who?") == []  # not of the site either
    assert [name for name, _ in other.counts("north", None, 9)] == ["side"]
    assert asked(other, StreamKey("north", "side"), "what?") == [7, 8]
    memory.forget_before(1500.0)
    assert not len(memory)
    assert memory.num_bytes == 0


def test_a_clock_that_is_ahead_keeps_nothing_for_longer():
    ahead = taught(3, now_s=9e9).export(FRONT)
    memory = Memory(clock=lambda: 1000.0)
    memory.take(FRONT, ahead)
    ((_, count),) = memory.counts("north", None, 9)
    assert count.newest_s == 1000.0
    memory.forget_before(1001.0)
    assert not len(memory)


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        plain(said=b"abc"),
        plain(said="text"),
        plain(said=plain()["said"] + bytes(4)),
        plain(said=np.array([5, 5, 6, -2, 7], dtype="<i4").tobytes()),
        plain(said=np.array([-1, 5, -6, -2, 7], dtype="<i4").tobytes()),
        plain(said=b"", lengths=[], said_at_s=[]),
        plain(lengths=[3]),
        plain(lengths=[4, 1]),
        plain(lengths=[5, 0]),
        plain(lengths=[3.0, 2]),
        plain(lengths=[True, 4]),
        plain(lengths=[3, 2**70]),
        plain(lengths=[10, -5]),
        plain(said_at_s=[1.0]),
        plain(said_at_s=[1.0, float("nan")]),
        plain(said_at_s=[1.0, float("inf")]),
        plain(said_at_s=[1.0, -1.0]),
        plain(said_at_s=[1.0, "now"]),
        plain(
            said=np.array([-1, 1] * (MAX_ANSWERS + 1), dtype="<i4").tobytes(),
            lengths=[2] * (MAX_ANSWERS + 1),
            said_at_s=[1.0] * (MAX_ANSWERS + 1),
        ),
        plain(said=bytes(4 * (MAX_TOKENS + 1))),
        plain(earned=[]),
        plain(earned={"memory": {"7000": [[0.0] * 9, [0.0] * 9]}}),
        plain(earned={"memory": {"0": [[0.0] * 9]}}),
        plain(earned={"memory": {"0": [[2.0] * 9, [1.0] * 9]}}),
        plain(earned={"memory": {"0": [[0.0] * 9, [float("inf")] * 9]}}),
        plain(earned={"memory": {"0": [["1"] * 9, [1.0] * 9]}}),
        plain(earned={str(number): {} for number in range(65)}),
        plain(earned={"x" * 300: {}}),
        plain(earned={7: {}}),
    ],
)
def test_a_malformed_one_is_refused(given):
    with pytest.raises(DraftingError):
        StreamSnapshot.parse(given)


def test_the_one_they_are_made_of_is_not_refused():
    assert StreamSnapshot.parse(plain()).num_answers == 2
