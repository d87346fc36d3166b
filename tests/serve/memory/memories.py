"""Memories to seal and to store, and an engine's end that is there without an engine."""

from headstart.drafters.memory import Memory
from headstart.drafters.stream_snapshot import StreamSnapshot
from headstart.speculation.board import TextVocabulary
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafter import DraftRequest, StreamKey

KEY = b"0123456789abcdef0123456789abcdef"
OTHER_KEY = b"fedcba9876543210fedcba9876543210"
FRONT = StreamKey("north", "front door")
QUESTION = "Who is there?"


def snapshot(*answers: list[int]) -> StreamSnapshot:
    memory = Memory()
    for answer in answers or ([1, 2, 3], [4, 5]):
        memory.begin(DraftRequest("told", FRONT, QUESTION))
        memory.finish("told", answer)
    found = memory.export(FRONT)
    assert found is not None
    return found


def cascade() -> Cascade:
    return Cascade([Memory()], TextVocabulary(1000))
