"""The source that is always wrong: it always speaks, in ordinary words, each time others."""

from headstart.drafters.port import Ask, StreamKey
from headstart.drafters.rehearsal import FIRST_ID, NUM_IDS, Rehearsal


def test_it_always_has_something_to_say_in_words_of_every_vocabulary():
    rehearsal = Rehearsal()
    rehearsal.begin(Ask("r", StreamKey("", "camera"), "q"))
    drafts = {tuple(rehearsal.propose("r", [1] * said, 32)) for said in range(40)}
    assert len(drafts) == 40
    for draft in drafts:
        assert len(draft) == 32
        assert all(FIRST_ID <= token < FIRST_ID + NUM_IDS for token in draft)


def test_a_request_it_does_not_know_gets_nothing():
    rehearsal = Rehearsal()
    assert rehearsal.propose("r", [], 8) == ()
    rehearsal.begin(Ask("r", StreamKey("", "camera"), "q"))
    rehearsal.finish("r", [1])
    assert rehearsal.propose("r", [], 8) == ()
    rehearsal.finish("never begun", [1])
