"""Compiled code checks no index, so the network does before it calls it."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs what the engine brings")

from headstart.errors import TrainingError
from headstart_research.bridge.config import BridgeConfig
from headstart_research.bridge.context import NO_TOKEN
from headstart_research.bridge.network import BridgeNetwork
from tests.bridge.random_bridge import random_weights

WORDS = 30
CONFIG = BridgeConfig(
    WORDS, width=16, num_layers=2, num_heads=2, hidden=32, pointer_width=8, max_answer_tokens=5
)


@pytest.fixture(scope="module")
def network():
    return BridgeNetwork(CONFIG, random_weights(CONFIG))


def context(network, followed_by=NO_TOKEN, length=3):
    own_ids = np.zeros(length, np.int32)
    return network.read_context(own_ids, np.full(length, followed_by, np.int32))


def test_a_sequence_takes_an_answer_and_its_mark_and_no_more(network):
    reading = context(network)
    network.look(reading, {})
    guesses = network.read_answer(reading, [WORDS, 1, 2, 3, 4, 5], [NO_TOKEN] * 6, [0] * 6)
    assert len(guesses.own_ids) == 6
    with pytest.raises(IndexError, match="no room"):
        network.read_answer(reading, [1], [NO_TOKEN], [0])
    with pytest.raises(IndexError, match="no room"):
        context(network, length=CONFIG.max_positions + 1)


def test_words_that_a_bridge_cannot_say_are_neither_quoted_nor_suggested(network):
    with pytest.raises(IndexError, match="no word"):
        context(network, followed_by=WORDS)
    reading = context(network, followed_by=WORDS - 1)
    network.look(reading, {})
    with pytest.raises(IndexError):
        network.read_answer(reading, [1], [WORDS], [0])


def test_weights_of_another_shape_are_refused():
    weights = random_weights(CONFIG)
    weights["layers.1.qkv"] = weights["layers.1.qkv"][:-1]
    with pytest.raises(TrainingError, match=r"no layers\.1\.qkv of the shape \(48, 16\)"):
        BridgeNetwork(CONFIG, weights)
