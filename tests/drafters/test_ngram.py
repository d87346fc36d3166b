from random import Random

from headstart.drafters.ngram import Ngram
from headstart.speculation.drafter import DraftRequest, StreamKey


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


def plain_lookup(text, max_tokens):
    """The rule word for word: the longest match of 4 to 2 tokens, of equals the most recent."""
    for length in (4, 3, 2):
        for stop in range(len(text) - 1, length - 1, -1):
            if text[stop - length : stop] == text[-length:]:
                return text[stop : stop + max_tokens], length
    return [], 0


def test_bytes_are_searched_as_tokens_would_be():
    """Ids of few bytes, so that equal bytes often are not equal tokens."""
    rng, num_found = Random(3), 0
    for _ in range(3000):
        words = rng.choice([[0, 1, 256], [1, 256, 65536, 65792], range(5)])
        text = rng.choices(words, k=rng.randrange(2, 40))
        cut = rng.randrange(len(text))
        proposed = ngram_with(text[:cut]).propose("r", text[cut:], 8)
        expected, match = plain_lookup(text, 8)
        assert list(proposed) == expected
        assert not expected or proposed.match == match
        num_found += bool(expected)
    assert num_found > 1000
