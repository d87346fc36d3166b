"""What a bridge reads: which answers, in which order, and what can be quoted from them."""

import numpy as np
import pytest

from headstart.errors import TrainingError
from headstart_research.bridge.config import BridgeConfig, FeatureSize
from headstart_research.bridge.context import (
    NO_TOKEN,
    EarlierAnswer,
    fitted,
    quotable,
    read_context,
)
from headstart_research.bridge.vocabulary import OTHER, QUESTION, SAME, UNKNOWN, DraftVocabulary


def said(question, *ids):
    return EarlierAnswer(question, np.array(ids, np.int32))


def asked_of(answers):
    return [answer.question for answer in answers]


def test_the_last_answers_to_the_same_question_are_read_however_old():
    history = [said("a", 1), said("a", 2), said("b", 3), said("c", 4), said("d", 5), said("e", 6)]
    assert asked_of(quotable(history, "a", 4)) == ["a", "a", "d", "e"]
    assert asked_of(quotable(history, "x", 4)) == ["b", "c", "d", "e"]
    assert asked_of(quotable(history, "a", 1)) == ["a"]
    assert [list(one.own_ids) for one in quotable(history, "a", 1)] == [[2]]
    assert quotable([], "a", 4) == []


def test_every_token_of_an_earlier_answer_can_be_quoted_after_the_one_before_it():
    vocabulary = DraftVocabulary.of([3, 5, 7, 9], 20)
    config = BridgeConfig(
        len(vocabulary), max_answers=2, max_answer_tokens=3, max_question_tokens=2
    )
    history = [said("b", 0, 1), said("a", 2, len(vocabulary) + UNKNOWN, 3, 1)]
    context = read_context(config, vocabulary, history, "a", [1, 5, 9])
    same, other, question, unknown = (4 + mark for mark in (SAME, OTHER, QUESTION, UNKNOWN))
    assert list(context.own_ids) == [other, 0, 1, same, 2, unknown, 3, question, 1, 3]
    nothing = NO_TOKEN
    assert list(context.followed_by) == [
        *(0, 1, nothing),
        *(2, nothing, 3, nothing),
        *(nothing, nothing, nothing),
    ]


def test_a_feature_has_unit_size_and_no_more_tokens_than_places():
    tokens = np.array([[3.0, 4.0], [0.3, 0.4], [-3.0, -4.0], [-30.0, -40.0]], np.float16)
    fit = fitted(FeatureSize("eye", 2, 4), tokens)
    assert np.allclose(np.square(fit).mean(axis=1), 1.0, atol=1e-3)
    assert fitted(FeatureSize("eye", 2, 2), tokens).shape == (2, 2)
    assert np.allclose(fitted(FeatureSize("eye", 2, 2), tokens)[0], fit[0], atol=1e-3)


def test_words_are_numbered_by_the_target_and_others_are_unknown():
    vocabulary = DraftVocabulary.used_in([[7, 7, 3], [7, 3, 11]], 12, max_size=2)
    assert list(vocabulary.target_ids) == [3, 7]
    assert list(vocabulary.own([7, 3, 11, -1, 500])) == [1, 0, 2, 2, 2]
    with pytest.raises(TrainingError, match="records are of this target"):
        DraftVocabulary.of([13], 12)
