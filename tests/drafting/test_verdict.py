from random import Random

from headstart.drafting.verdict import Verdict


def test_the_first_rejected_token_is_recovered():
    verdict = Verdict.greedy([1, 2, 9], [1, 2, 3, 4])
    assert (verdict.accepted, verdict.recovered, verdict.bonus) == ((1, 2), 3, None)
    assert verdict.tokens == (1, 2, 3)


def test_a_draft_accepted_whole_earns_a_bonus():
    verdict = Verdict.greedy([1, 2], [1, 2, 3, 4])
    assert (verdict.accepted, verdict.recovered, verdict.bonus) == ((1, 2), None, 3)


def test_an_answer_that_ends_inside_the_draft_yields_nothing_more():
    assert Verdict.greedy([1, 2, 3], [1, 2]).tokens == (1, 2)


def test_any_drafts_reproduce_the_answer_exactly():
    rng = Random(2)
    for _ in range(1000):
        answer = tuple(rng.choices(range(3), k=rng.randrange(1, 30)))
        said = ()
        while len(said) < len(answer):
            draft = rng.choices(range(3), k=rng.randrange(6))
            said += Verdict.greedy(draft, answer[len(said) :]).tokens
        assert said == answer
