"""The network that is trained and the one that drafts are the same."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs what the engine brings")

from safetensors.torch import load_file

from headstart_lab.pair import INSTALLED
from headstart_research.bridge.bridge import Bridge
from headstart_research.bridge.config import BridgeConfig, FeatureSize
from headstart_research.bridge.context import (
    NO_TOKEN,
    NUM_MATCHES,
    fitted,
    match_kind,
    read_context,
)
from headstart_research.bridge.hub import WEIGHTS
from headstart_research.bridge.network import BridgeNetwork, calibrated
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.bridge.vocabulary import ANSWER, DraftVocabulary
from headstart_research.training.bridge_data import BridgeData, Order
from headstart_research.training.bridge_model import Batch, BridgeModel, Seen
from headstart_research.training.bridge_task import packed
from tests.bridge import made_up

FEATURES = (
    FeatureSize(DRAFTER, made_up.FEATURE_SIZE, 2),
    FeatureSize(EARLIER, made_up.FEATURE_SIZE, 2),
    FeatureSize(LAST, made_up.FEATURE_SIZE, 3),
)
NAMES = tuple(feature.name for feature in FEATURES)


@pytest.fixture(scope="module")
def vocabulary():
    return DraftVocabulary.used_in(
        (record.answer_ids for record in made_up.records()), made_up.VOCABULARY_SIZE, 1000
    )


@pytest.fixture(scope="module")
def model(vocabulary):
    torch.manual_seed(0)
    config = BridgeConfig(
        len(vocabulary), FEATURES, width=32, num_layers=2, num_heads=2, hidden=64, pointer_width=16
    )
    model = BridgeModel(config)
    with torch.no_grad():  # as if trained: nothing is zero, so nothing can be missed
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        model.calibration.copy_(torch.tensor([0.8, -0.1]))
    return model


@pytest.fixture(scope="module")
def examples(vocabulary):
    data = BridgeData(made_up.records(), vocabulary, NAMES)
    stream = data.learnt[0]
    subsets = (NAMES, (), (DRAFTER,), (LAST, EARLIER))
    return [
        data.example(stream, place, order, place % 2 == 0, subsets[place % 4])
        for place, order in ((0, Order.ALL), (5, Order.ONE), (10, Order.TURN), (15, Order.ALL))
    ]


def network_of(model):
    weights = {name: value.numpy() for name, value in model.saved_weights().items()}
    return BridgeNetwork(model.config, weights)


def read(network, vocabulary, example, in_pieces):
    """The guesses of the network that drafts."""
    told = example.told
    context = read_context(network.config, vocabulary, example.history, told.question, told.prompt)
    reading = network.read_context(context.own_ids, context.followed_by)
    features = {
        feature.name: fitted(feature, told.features[feature.name])
        for feature in network.config.features
        if feature.name in example.features
    }
    network.look(reading, features)
    own = [vocabulary.mark(ANSWER), *told.own_ids[:-1]]
    suggested = np.where(example.suggested == len(vocabulary), NO_TOKEN, example.suggested)
    matches = [match_kind(int(match)) for match in example.matches]
    words, chances = [], []
    for start in range(0, len(own), in_pieces):
        piece = slice(start, start + in_pieces)
        guesses = network.read_answer(reading, own[piece], suggested[piece], matches[piece])
        words += guesses.own_ids.tolist()
        chances += guesses.chances.tolist()
    return words, chances


@pytest.mark.parametrize("in_pieces", [1, 5, 100])
def test_both_networks_guess_the_same(model, vocabulary, examples, in_pieces):
    with torch.no_grad():
        mixtures = model(packed(model.config, vocabulary, examples))
    slope, offset = model.calibration.tolist()
    network = network_of(model)
    for row, example in enumerate(examples):
        best = mixtures[row, : len(example.told.answer)].max(dim=-1)
        odds = best.values.double().log() - (1 - best.values.double()).log()
        words, chances = read(network, vocabulary, example, in_pieces)
        assert words == best.indices.tolist()
        assert np.allclose(chances, torch.sigmoid(slope * odds + offset), atol=1e-4)


def test_the_labs_bridge_guesses_as_the_network_that_was_trained():
    """Of its own sizes, with earlier answers, features and memory's suggestions."""
    bridge = Bridge.load(INSTALLED / "bridge")
    model = BridgeModel(bridge.config)
    weights = load_file(INSTALLED / "bridge" / WEIGHTS)
    names = {name.removeprefix("features."): name for name in model.state_dict()}
    model.load_state_dict({names[name]: weights[name] for name in names})
    draw, words = np.random.default_rng(0), len(bridge.vocabulary)
    config, network = bridge.config, bridge.network
    context = draw.integers(0, words, 230).astype(np.int32)
    followed_by = np.where(draw.random(230) < 0.9, draw.integers(0, words, 230), NO_TOKEN)
    answer = [bridge.vocabulary.mark(ANSWER), *draw.integers(0, words, 40).tolist()]
    suggested = np.where(draw.random(41) < 0.8, draw.integers(0, words, 41), NO_TOKEN)
    matches = draw.integers(0, NUM_MATCHES, 41)
    shown = {
        feature.name: fitted(
            feature, draw.normal(size=(feature.max_tokens, feature.size)).astype(np.float16)
        )
        for feature in config.features
    }
    batch = Batch(
        own_ids=torch.tensor([*context.tolist(), *answer])[None],
        followed_by=torch.tensor([*followed_by.tolist(), *[NO_TOKEN] * 41])[None] % (words + 1),
        features={
            name: Seen(torch.from_numpy(seen)[None], torch.ones(1, len(seen), dtype=torch.bool))
            for name, seen in shown.items()
        },
        places=torch.arange(230, 271)[None],
        suggested=torch.from_numpy(suggested)[None] % (words + 1),
        matches=torch.from_numpy(matches)[None],
        targets=torch.zeros(1, 41, dtype=torch.long),
    )
    with torch.no_grad():
        best = model(batch)[0].max(dim=-1)
    reading = network.read_context(context, followed_by.astype(np.int32))
    network.look(reading, shown)
    guesses = network.read_answer(reading, answer, suggested, matches.tolist())
    wanted = calibrated(best.values.numpy(), model.calibration.numpy())
    assert guesses.own_ids.tolist() == best.indices.tolist()
    assert np.allclose(guesses.chances, wanted, atol=1e-4)
    assert len(set(guesses.own_ids.tolist())) > 10


def test_what_is_beside_a_row_in_a_batch_changes_nothing(model, vocabulary, examples):
    with torch.no_grad():
        together = model(packed(model.config, vocabulary, examples))
        for row, example in enumerate(examples):
            alone = model(packed(model.config, vocabulary, [example]))[0]
            assert torch.allclose(together[row, : len(alone)], alone, atol=1e-5)


def test_chances_sum_to_one_and_every_input_counts(model, vocabulary, examples):
    with torch.no_grad():
        batch = packed(model.config, vocabulary, examples)
        mixtures = model(batch)
        said = batch.targets <= len(vocabulary)
        assert torch.allclose(mixtures[said].sum(dim=-1), torch.ones(int(said.sum())), atol=1e-4)
        example = examples[0]
        blind = packed(model.config, vocabulary, [replace(example, features=())])
        silent = replace(
            example,
            suggested=np.full_like(example.suggested, len(vocabulary)),
            matches=np.zeros_like(example.matches),
        )
        quiet = packed(model.config, vocabulary, [silent])
        new = packed(model.config, vocabulary, [replace(examples[3], history=[])])
        length = len(example.told.answer)
        assert not torch.allclose(model(blind)[0], mixtures[0, :length], atol=1e-3)
        assert not torch.allclose(model(new)[0], mixtures[3, : len(examples[3].told.answer)])
        with_memory = (example.suggested < len(vocabulary)).any()
        assert bool(with_memory) != torch.allclose(model(quiet)[0], mixtures[0, :length])
