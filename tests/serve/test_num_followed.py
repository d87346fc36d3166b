"""How much of an answer was predicted: counted by the rule by which a board drafts."""

import time
from random import Random

import pytest

from headstart.speculation.board import MAX_DRAFT_TOKENS, DraftBoard, TextVocabulary
from headstart.speculation.draft import Draft
from headstart_server.prediction import num_followed


@pytest.mark.parametrize(
    ("predicted", "said", "followed"),
    [
        ((5, 6, 7), (5, 6, 7), 3),
        ((5, 6, 7), (5, 6, 7, 2), 3),
        ((5, 6, 7), (5, 6), 2),
        ((5, 6, 7), (9, 6, 7), 0),
        ((5, 6, 7, 8), (5, 9, 7, 8), 1),
        ((), (5, 6), 0),
        ((5, 6), (), 0),
    ],
    ids=[
        "whole",
        "goes on",
        "ends early",
        "begins otherwise",
        "one word differs",
        "none",
        "silent",
    ],
)
def test_a_prediction_is_followed_in_its_place(predicted, said, followed):
    assert num_followed(predicted, said) == followed


def test_after_three_repeated_tokens_it_is_followed_again():
    predicted = (5, 6, 7, 8, 9, 10, 11)
    assert num_followed(predicted, (4, 7, 8, 3, 10)) == 0
    assert num_followed(predicted, (4, 7, 8, 9, 10, 11)) == 2
    assert num_followed(predicted, (5, 6, 4, 7, 8, 9, 10, 11)) == 4


def test_each_token_is_counted_once_however_often_it_is_said():
    assert num_followed((5, 6, 7, 8), (5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8)) == 4


def test_what_lies_beyond_a_drafts_length_is_not_counted():
    predicted = tuple(range(MAX_DRAFT_TOKENS + 50))
    assert num_followed(predicted, predicted) == MAX_DRAFT_TOKENS


def test_what_is_followed_is_what_a_board_would_have_drafted():
    rng = Random(3)
    counts = set()
    for _ in range(400):
        predicted = tuple(rng.sample(range(3, 60), 12))
        said = list(predicted)
        for _ in range(rng.randrange(4)):
            said[rng.randrange(12)] = rng.randrange(60, 99)
        board = DraftBoard(TextVocabulary(100))
        board.post(Draft(predicted, "caller", 0.0))
        drafted = sum(board.propose(said[:at], 1).tokens == (said[at],) for at in range(12))
        assert num_followed(predicted, said) == drafted
        counts.add(drafted)
    assert len(counts) > 5


def test_a_long_answer_of_repetitions_costs_a_bounded_time():
    started = time.thread_time()
    num_followed((5,) * MAX_DRAFT_TOKENS, ([5] * 3 + [6]) * 250)
    assert time.thread_time() - started < 5.0
