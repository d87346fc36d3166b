"""Warm memory: what a stream quotes of its tenant's other streams, and of nobody else's."""

from random import Random

from headstart.drafters.memory import Memory
from headstart.drafters.tenant_memory import MAX_SITE_ANSWERS
from headstart.speculation.drafter import DraftRequest, StreamKey

QUESTION = "what is in sight?"


def tell(memory, stream, answer, question=QUESTION, tenant="north"):
    memory.begin(DraftRequest("told", StreamKey(tenant, stream), question))
    memory.finish("told", answer)


def asked(memory, stream, confirmed=(), question=QUESTION, tenant="north", max_tokens=64):
    memory.begin(DraftRequest("asked", StreamKey(tenant, stream), question))
    try:
        return list(memory.propose("asked", confirmed, max_tokens))
    finally:
        memory.finish("asked", ())


def test_a_new_stream_quotes_the_only_other_one():
    memory = Memory()
    tell(memory, "front", [1, 2, 3])
    assert asked(memory, "back") == [1, 2, 3]


def test_what_was_said_before_the_second_stream_came_is_known_to_the_third():
    memory = Memory()
    tell(memory, "front", [1, 2, 3], question="who?")
    tell(memory, "front", [4, 5, 6])
    tell(memory, "back", [7, 8, 9])
    assert asked(memory, "side", question="who?") == [1, 2, 3]
    assert asked(memory, "side", [4]) == [5, 6]
    assert asked(memory, "side", [7]) == [8, 9]


def test_of_the_others_the_most_recent_answer_to_the_question_is_quoted():
    memory = Memory()
    for stream, answer in (("front", [1, 2]), ("back", [3, 4]), ("front", [5, 6])):
        tell(memory, stream, answer)
    assert asked(memory, "new") == [5, 6]
    tell(memory, "back", [7, 8])
    assert asked(memory, "new") == [7, 8]


def test_a_streams_own_answer_to_the_question_comes_first():
    memory = Memory()
    tell(memory, "front", [1, 2, 3])
    tell(memory, "back", [4, 5, 6])
    assert asked(memory, "front") == [1, 2, 3]
    assert asked(memory, "back") == [4, 5, 6]


def test_a_streams_own_words_come_first_where_others_match_no_further():
    memory = Memory()
    tell(memory, "front", [1, 2, 3, 10])
    tell(memory, "back", [1, 2, 3, 20])
    assert asked(memory, "front", [9, 1, 2, 3]) == [10]
    assert asked(memory, "back", [9, 1, 2, 3]) == [20]


def test_others_are_quoted_where_a_longer_context_is_known_of_them():
    memory = Memory()
    tell(memory, "front", [7, 3, 10, 11])
    tell(memory, "back", [1, 2, 3, 20, 21])
    assert asked(memory, "front", [9, 1, 2, 3], max_tokens=2) == [20, 21]  # three words against one
    tell(memory, "front", [2, 3, 30, 31])
    assert asked(memory, "front", [9, 1, 2, 3], max_tokens=2) == [30, 31]  # against two, it is near
    tell(memory, "back", [9, 1, 2, 3, 40, 41])
    assert asked(memory, "front", [9, 1, 2, 3], max_tokens=2) == [40, 41]  # four against two


def test_a_question_that_nobody_was_asked_is_drafted_by_its_words():
    memory = Memory()
    tell(memory, "front", [1, 2, 3])
    assert asked(memory, "back", question="where?") == []
    assert asked(memory, "back", [1], question="where?") == [2, 3]


def test_no_word_of_another_tenant_is_quoted_whatever_is_asked():
    rng = Random(0)
    memory = Memory()
    secret = list(range(1000, 1200))
    for _ in range(40):
        answer = rng.sample(secret, 30)
        tell(memory, rng.choice(("front", "back")), answer, tenant="north")
        memory.seed("north", QUESTION, answer)
    names = ("front", "back", "", "north", "north/front")
    for tenant in ("south", "", "north ", "North"):
        tell(memory, "front", [1, 2, 3], tenant=tenant)
        for _ in range(50):
            confirmed = rng.sample(secret, rng.randrange(9))
            drafted = asked(memory, rng.choice(names), confirmed, tenant=tenant)
            assert not set(drafted) & set(secret)
    assert asked(memory, "side", tenant="north")  # or else nothing could have been quoted at all


def test_what_belongs_to_no_stream_neither_quotes_nor_is_quoted():
    memory = Memory()
    memory.begin(DraftRequest("a", StreamKey("north", ""), QUESTION, remembered=False))
    memory.finish("a", [1, 2, 3])
    assert asked(memory, "front") == []
    tell(memory, "front", [4, 5])
    tell(memory, "back", [6, 7])
    memory.begin(DraftRequest("b", StreamKey("north", ""), QUESTION, remembered=False))
    assert list(memory.propose("b", [], 8)) == list(memory.propose("b", [4], 8)) == []


def test_a_seeded_answer_is_quoted_by_every_stream_of_its_tenant_alone():
    memory = Memory()
    memory.seed("north", QUESTION, [1, 2, 3])
    assert asked(memory, "front") == [1, 2, 3]
    assert asked(memory, "front", tenant="south") == []
    tell(memory, "front", [4, 5, 6])
    assert asked(memory, "front") == [4, 5, 6]
    assert asked(memory, "front", [2]) == [3]


def test_a_forgotten_stream_is_quoted_by_nobody():
    memory = Memory()
    tell(memory, "front", [1, 2, 3])
    tell(memory, "back", [4, 5, 6])
    memory.forget(StreamKey("north", "front"))
    assert asked(memory, "side", [1]) == []
    assert asked(memory, "side") == asked(memory, "back") == [4, 5, 6]
    tell(memory, "side", [7, 8])
    assert asked(memory, "new", [4]) == [5, 6]
    assert asked(memory, "new", [1]) == []


def test_the_site_keeps_the_newest_answers_only():
    memory = Memory()
    tell(memory, "front", [1])
    for number in range(MAX_SITE_ANSWERS):
        tell(memory, f"camera {number % 100}", [10 + number, 5])
    assert asked(memory, "new", [10]) == [5]
    tell(memory, "back", [2, 3])
    assert asked(memory, "new", [10]) == []
    assert asked(memory, "new", [11]) == [5]
    assert asked(memory, "camera 0", [10]) == [5]
