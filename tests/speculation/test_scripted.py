from random import Random

import pytest

from headstart.errors import DraftingError
from headstart.speculation.draft import num_agreeing
from headstart.speculation.drafter import DraftRequest, StreamKey
from tests.speculation.scripted import RUBBISH, Script, Scripted

STREAM = StreamKey("", "")


def begun(answers, script, clock=lambda: 0.0):
    drafter = Scripted(answers, script, clock)
    for request in answers:
        drafter.begin(DraftRequest(request, STREAM, "q"))
    return drafter


def test_a_perfect_script_drafts_the_answer():
    drafter = begun({"r": [1, 2, 3, 4]}, Script())
    assert list(drafter.propose("r", [1], 2)) == [2, 3]


def test_acceptance_is_what_was_asked_for():
    rng = Random(5)
    answers = {str(i): rng.choices(range(100), k=20) for i in range(2000)}
    drafter = begun(answers, Script(acceptance=0.8, seed=7))
    accepted = [num_agreeing(drafter.propose(r, [], 20), truth) for r, truth in answers.items()]
    expected = sum(0.8**i for i in range(1, 21))
    assert sum(accepted) / len(accepted) == pytest.approx(expected, rel=0.1)


def test_nothing_is_drafted_before_the_delay():
    now = [0.0]
    drafter = begun({"r": [1, 2]}, Script(delay_s=0.5), lambda: now[0])
    assert list(drafter.propose("r", [], 2)) == []
    now[0] = 0.5
    assert list(drafter.propose("r", [], 2)) == [1, 2]


def test_corruption_is_rubbish_and_the_same_each_time():
    drafter = begun({str(i): [1, 2, 3] for i in range(400)}, Script(corruption=0.25, seed=1))
    drafts = [list(drafter.propose(str(i), [], 3)) for i in range(400)]
    num_rubbish = sum(draft[0] in RUBBISH for draft in drafts)
    assert 60 < num_rubbish < 140
    assert drafts == [list(drafter.propose(str(i), [], 3)) for i in range(400)]


@pytest.mark.parametrize("wrong", [{"acceptance": 1.5}, {"corruption": -0.1}, {"delay_s": -1.0}])
def test_impossible_scripts_are_refused(wrong):
    with pytest.raises(DraftingError):
        Script(**wrong)
