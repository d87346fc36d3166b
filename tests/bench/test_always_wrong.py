"""The source that is always wrong: it always speaks, in ordinary words, each time others."""

from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.always_wrong import FIRST_ID, NUM_IDS, AlwaysWrong


def test_it_always_has_something_to_say_in_words_of_every_vocabulary():
    drafter = AlwaysWrong()
    drafter.begin(DraftRequest("r", StreamKey("", "camera"), "q"))
    drafts = {tuple(drafter.propose("r", [1] * said, 32)) for said in range(40)}
    assert len(drafts) == 40
    for draft in drafts:
        assert len(draft) == 32
        assert all(FIRST_ID <= token < FIRST_ID + NUM_IDS for token in draft)


def test_a_request_it_does_not_know_gets_nothing():
    drafter = AlwaysWrong()
    assert drafter.propose("r", [], 8) == ()
    drafter.begin(DraftRequest("r", StreamKey("", "camera"), "q"))
    drafter.finish("r", [1])
    assert drafter.propose("r", [], 8) == ()
    drafter.finish("never begun", [1])
