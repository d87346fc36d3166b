from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.ngram import Ngram


def ngram_with(prompt):
    drafter = Ngram()
    drafter.begin(DraftRequest("r", StreamKey("", ""), "q", tuple(prompt)))
    return drafter


def test_the_prompts_words_are_repeated():
    assert list(ngram_with([1, 2, 3, 4, 5]).propose("r", [2, 3], 2)) == [4, 5]


def test_the_answers_own_words_are_repeated_the_longest_match_first():
    confirmed = [1, 2, 3, 8, 5, 2, 3, 9, 1, 2, 3]
    assert next(iter(ngram_with([]).propose("r", confirmed, 4))) == 8


def test_one_word_alone_is_no_match():
    assert list(ngram_with([1, 2, 3]).propose("r", [2], 4)) == []


def test_unknown_requests_are_no_error():
    drafter = ngram_with([1, 2, 3])
    drafter.finish("r", [1])
    assert list(drafter.propose("r", [1, 2], 4)) == []
    drafter.finish("r", [1])
