"""Examples: orders of asking, what is remembered in them, and that they are drawn alike."""

from dataclasses import replace

import numpy as np
import pytest

from headstart.errors import TrainingError
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.bridge.vocabulary import DraftVocabulary
from headstart_research.training.bridge_data import BridgeData, Order
from tests.bridge import made_up

NAMES = (DRAFTER, EARLIER, LAST)


@pytest.fixture(scope="module")
def data():
    rows = made_up.records()
    vocabulary = DraftVocabulary.used_in(
        (row.answer_ids for row in rows), made_up.VOCABULARY_SIZE, 1000
    )
    return BridgeData(rows, vocabulary, NAMES)


def asked_before(stream, place, order):
    return [
        (stream.clips[stream.told.index(told)], told.question)
        for told in stream.before(place, order)
    ]


def test_an_answer_has_the_history_of_its_order(data):
    stream = data.learnt[0]
    first, second, third = made_up.QUESTIONS
    place = stream.found[3, second]
    assert asked_before(stream, place, Order.ONE) == [(0, second), (1, second), (2, second)]
    assert asked_before(stream, place, Order.TURN) == [(0, second), (1, third), (2, first)]
    assert len(asked_before(stream, place, Order.ALL)) == place == 10


def test_nothing_of_an_answer_is_known_before_it_is_given(data):
    """Memory's suggestions come from earlier answers and other streams alone."""
    stream = data.learnt[0]
    first = data.example(stream, 0, Order.ALL, False, NAMES)
    assert (first.suggested == len(data.vocabulary)).all()
    assert not first.history
    later = data.example(stream, 9, Order.ONE, False, NAMES)
    assert (later.suggested < len(data.vocabulary)).sum() > 5
    assert (later.matches[later.suggested < len(data.vocabulary)] > 0).all()


def test_a_warm_example_also_knows_other_streams(data):
    stream = data.learnt[0]
    cold = data.example(stream, 0, Order.ONE, False, ())
    warm = data.example(stream, 0, Order.ONE, True, ())
    assert (cold.suggested < len(data.vocabulary)).sum() == 0
    assert (warm.suggested < len(data.vocabulary)).sum() > 5


def test_a_step_draws_the_same_again_and_another_step_others(data):
    def drawn(step, seed=0):
        return [
            (example.told, len(example.history), example.features)
            for example in data.batch(step, seed, 8)
        ]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)
    assert drawn(3) != drawn(3, seed=1)


def test_features_of_one_model_come_together_or_not_at_all(data):
    shown = {example.features for step in range(20) for example in data.batch(step, 0, 8)}
    assert shown == {(), (DRAFTER,), (EARLIER, LAST), NAMES}


def test_streams_kept_back_are_not_learnt(data):
    learnt = {stream.name for stream in data.learnt}
    assert data.held_out
    assert not learnt & {stream.name for stream in data.held_out}
    told = {id(one) for stream in data.held_out for one in stream.told}
    assert all(id(example.told) not in told for example in data.batch(0, 0, 200))
    assert all(id(example.told) in told for example in data.examined(20, NAMES))


def test_no_records_are_refused(data):
    with pytest.raises(TrainingError, match="collect"):
        BridgeData([], data.vocabulary, NAMES)


def test_a_log_without_prompts_is_taken(data):
    rows = [replace(row, prompt_ids=(), features={}) for row in made_up.records(num_streams=3)]
    bare = BridgeData(rows, data.vocabulary, ())
    example = bare.batch(0, 0, 1)[0]
    assert example.features == ()
    assert example.told.prompt == ()
    assert example.told.own_ids.dtype == np.int32
