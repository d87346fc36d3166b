"""A draft is a hint: whatever is posted, what is proposed is text and nothing raises."""

import time
from random import Random

import numpy as np
import pytest

from headstart.errors import DraftingError
from headstart.speculation.board import MAX_SOURCES, DraftBoard, TextVocabulary
from headstart.speculation.draft import NOTHING, Draft

TEXT = TextVocabulary.of(1000, special_ids=(0, 1))


def board_with(*drafts):
    board = DraftBoard(TEXT)
    for draft in drafts:
        board.post(draft)
    return board


def test_a_draft_goes_on_where_the_confirmed_words_end():
    board = board_with(Draft((5, 6, 7, 8), "eventgpt", 0.0))
    assert board.propose([], 10).tokens == (5, 6, 7, 8)
    assert board.propose([5, 6], 10).tokens == (7, 8)
    assert board.propose([5, 6], 1).tokens == (7,)
    assert board.propose([5, 6, 7, 8], 10) == NOTHING


def test_a_contradicted_draft_is_silent_until_its_words_return():
    board = board_with(Draft((5, 6, 7, 8, 9, 10), "eventgpt", 0.0))
    assert board.propose([4, 6, 7], 10) == NOTHING
    assert board.propose([4, 3, 6, 7, 8], 10).tokens == (9, 10)


def test_resync_takes_the_longest_match():
    draft = Draft((2, 5, 6, 7, 11, 3, 5, 6, 7, 12), "eventgpt", 0.0)
    assert board_with(draft).propose([9, 2, 5, 6, 7], 1).tokens == (11,)
    assert board_with(draft).propose([9, 3, 5, 6, 7], 1).tokens == (12,)


def test_a_draft_made_inside_the_answer_starts_there():
    board = board_with(Draft((7, 8), "memory", 0.0, start=2))
    assert board.propose([5, 6], 10).tokens == (7, 8)
    assert board.propose([5, 6, 7], 10).tokens == (8,)
    assert board.propose([5], 10) == NOTHING


def test_the_order_decides_who_speaks_and_without_one_the_newest():
    board = board_with(Draft((5,), "early", 1.0), Draft((6,), "late", 2.0))
    assert board.propose([], 4).source == "late"
    assert board.propose([], 4, ["early", "late"]).source == "early"
    assert board.propose([], 4, ["nobody"]) == NOTHING


def test_a_source_replaces_its_own_draft():
    board = board_with(Draft((5, 6), "a", 1.0), Draft((7,), "a", 2.0))
    assert board.propose([], 4).tokens == (7,)


@pytest.mark.parametrize(
    "tokens",
    [
        (-1, 5),
        (1000,),
        (2**70,),
        (0, 5),
        (True, 5),
        (2.0,),
        ("5",),
        (None,),
        ((),),
        (),
        (np.zeros(2),),
        (np.int64(5),),
    ],
)
def test_hostile_draft_is_never_proposed(tokens):
    assert board_with(Draft(tokens, "hostile", 0.0)).propose([], 8) == NOTHING


def test_a_draft_is_cut_before_its_first_hostile_id():
    assert board_with(Draft((5, 6, 1000, 7), "a", 0.0)).propose([], 8).tokens == (5, 6)


def test_a_huge_draft_and_many_sources_cost_a_bounded_time():
    board = board_with(*(Draft((5, 6) * 5000, f"s{i}", 0.0) for i in range(10 * MAX_SOURCES)))
    started = time.thread_time()
    proposal = board.propose([5, 6] * 40 + [7, 5, 6, 5], 64)
    assert time.thread_time() - started < 0.5
    assert len(proposal.tokens) <= 64


def test_nothing_raises_on_random_rubbish():
    rng = Random(1)
    values = [-5, 0, 1, 2, 3, 4, 999, 1000, 2**40, None, "x", 1.5, np.zeros(2)]
    for _ in range(2000):
        board = DraftBoard(TEXT)
        for source in range(3):
            tokens = tuple(rng.choices(values, k=rng.randrange(12)))
            board.post(Draft(tokens, str(source), rng.random(), rng.randrange(-3, 6)))
        confirmed = rng.choices([2, 3, 4], k=rng.randrange(10))
        proposal = board.propose(confirmed, rng.randrange(-2, 12))
        assert all(type(token) is int and 2 <= token < 1000 for token in proposal.tokens)


def test_a_vocabulary_without_text_is_refused():
    with pytest.raises(DraftingError, match="num_text_ids"):
        TextVocabulary(0)
