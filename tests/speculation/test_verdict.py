from random import Random

from headstart.speculation.draft import Draft, Verdict


def accepted(drafted, said):
    return Verdict.greedy(Draft(tuple(drafted), "source", 0.0), said).num_accepted


def test_tokens_are_accepted_up_to_the_first_wrong_one():
    assert accepted([1, 2, 9, 4], [1, 2, 3, 4]) == 2
    assert accepted([9, 2, 3], [1, 2, 3]) == 0


def test_a_draft_may_be_accepted_whole():
    assert accepted([1, 2], [1, 2, 3, 4]) == 2


def test_no_more_is_accepted_than_was_said():
    assert accepted([1, 2, 3], [1, 2]) == 2


def test_any_drafts_reproduce_the_answer_exactly():
    rng = Random(2)
    for _ in range(1000):
        answer = tuple(rng.choices(range(3), k=rng.randrange(1, 30)))
        said = ()
        while len(said) < len(answer):
            drafted, rest = rng.choices(range(3), k=rng.randrange(6)), answer[len(said) :]
            count = accepted(drafted, rest)
            said += (*drafted[:count], *rest[count : count + 1])
        assert said == answer
