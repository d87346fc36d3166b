"""Answers in arrays: chains lead to every place, and only so much is kept."""

from random import Random

import numpy as np
import pytest

pytest.importorskip("numba")

from headstart_research.ranker import answer_log
from headstart_research.ranker.answer_log import AnswerLog, as_said
from headstart_research.ranker.arrays import CONTEXT_LENGTHS, slot_of_context, slot_of_token


def answers_of(log):
    starts, tokens = log.arrays.starts, log.arrays.tokens
    return [tokens[starts[n] + 1 : starts[n + 1]].tolist() for n in range(log.num_answers)]


def random_answers(seed, num_answers, num_words=6):
    rng = Random(seed)
    return [rng.choices(range(num_words), k=rng.randrange(1, 30)) for _ in range(num_answers)]


def test_chains_lead_to_every_place_of_a_context_the_latest_first():
    log, said = AnswerLog(), random_answers(1, 60)
    for answer in said:
        log.learn("", "q", answer)
    assert answers_of(log) == said
    arrays, rng = log.arrays, Random(2)
    end = arrays.starts[log.num_answers]
    for _ in range(100):
        kind = rng.randrange(len(CONTEXT_LENGTHS))
        length, answer = CONTEXT_LENGTHS[kind], rng.choice(said)
        if len(answer) < length:
            continue
        context = as_said("q", answer[:length])[1:]
        expected = [
            place
            for place in range(length, end)
            if arrays.answers[place - length] == arrays.answers[place]
            and (arrays.tokens[place - length : place] == context).all()
        ]
        found, place = [], arrays.heads[kind, slot_of_context(arrays, context, length, length)]
        while place >= 0:
            if (arrays.tokens[place - length : place] == context).all():
                found.append(place)
            place = arrays.back[kind, place]
        assert found == expected[::-1]


def test_the_oldest_answers_go_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(answer_log, "MAX_ANSWERS", 40)
    log, said = AnswerLog(), random_answers(3, 130)
    for number, answer in enumerate(said, start=1):
        log.learn(f"camera {number % 3}", "q", answer)
        assert 30 <= log.num_answers <= 40 or number < 30
        assert answers_of(log) == said[number - log.num_answers : number]
    assert log.stream("camera 1")[1] == 44  # counted from its first one
    assert log.stream("never heard of") == (-1, 0)


def test_the_oldest_answers_go_when_they_are_too_long():
    log, num_told = AnswerLog(), 0
    for number in range(800):
        log.learn("", "q", [number] * (9000 if number % 2 else 1))
        num_told += 1
        assert log.arrays.starts[log.num_answers] <= answer_log.MAX_TOKENS
    assert 0 < log.num_answers < num_told
    assert log.num_bytes < 11 << 20
    assert len(answers_of(log)[-1]) == answer_log.MAX_ANSWER_TOKENS
    assert answers_of(log)[-2] == [798]


def test_common_words_are_chosen_once_and_counted_in_every_answer():
    log = AnswerLog()
    for _ in range(answer_log.COMMON_AFTER):
        log.learn("", "q", [7, 5, 7, 5, 7, 9])
    assert log.arrays.common.tolist() == [7, 5, 9, -1, -1, -1, -1, -1]
    log.learn("", "q", [5, 5, 1, 7])
    for number in (0, log.num_answers - 1):
        start = log.arrays.starts[number]
        said = log.arrays.tokens[start : log.arrays.starts[number + 1]].tolist()
        for place in range(len(said)):
            counts = log.arrays.counts[start + place].tolist()
            assert counts[:3] == [said[:place].count(word) for word in (7, 5, 9)]
    for _ in range(100):
        log.learn("", "q", [3] * 20)
    assert log.arrays.common.tolist()[:3] == [7, 5, 9]


def test_the_spread_of_a_word_is_how_many_answers_say_it():
    log = AnswerLog()
    for answer in ([1, 1, 2], [1, 3], [2, 2]):
        log.learn("", "q", answer)
    spread = [log.arrays.spread[slot_of_token(log.arrays, word)] for word in (1, 2, 3, 4)]
    assert spread == [2, 2, 1, 0]


def test_arrays_that_were_read_stay_as_they_were():
    log = AnswerLog()
    log.learn("", "q", [1, 2, 3])
    arrays, copied = log.arrays, [array.copy() for array in log.arrays]
    end = arrays.starts[1]
    for answer in random_answers(4, 400):
        log.learn("", "q", answer)
    assert log.arrays is not arrays
    assert (arrays.tokens[:end] == copied[0][:end]).all()
    assert (arrays.back[:, :end] == copied[3][:, :end]).all()


def test_only_numbers_of_32_bits_are_words():
    assert as_said("q", [1, 2]).dtype == np.int32
    with pytest.raises(OverflowError):
        as_said("q", [2**31])
