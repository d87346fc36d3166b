"""A drafter with another tokenizer than the target's: its words save passes, and change none."""

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs an engine's torch: headstart[cpu]")

from headstart_lab.answering import MAX_TOKENS, held_out_drive
from headstart_lab.language.questions import Question
from headstart_lab.tiny import TinyEventGpt
from safetensors.torch import load_file, save_file
from tests.engine.drafter.test_drafter import ARGUMENTS
from tests.engine.drafter.test_hostile_drafter import drafted_and_accepted
from tests.engine.drafts import PATIENCE_S, ask_target, drafter_of, drafting
from tests.speculation.spellers import BYTES, SPECIAL, byte_level
from tests.waiting import wait_until
from transformers import PreTrainedTokenizerFast

from headstart import EventDrafter, Headstart, Sources
from headstart.engine.drafter import messages
from headstart.engine.drafter.channel import send
from headstart.engine.drafter.client import DrafterClient
from headstart.engine.model import Model

pytestmark = pytest.mark.engine

MAX_DRAFT_TOKENS = 16
FEW_TOKENS = 24
"""Enough to be wrong about, where each costs a pass."""
SCENE, WEATHER = Question.KEY_ELEMENTS.usual, Question.WEATHER.usual


def shuffle_ids(source, directory, rng):
    """A copy of a model that says the same by other ids.

    Its rows and its tokenizer's pieces change places together. That is the cheapest other tokenizer
    under which a model is known to be right: a model trained on other pieces would say other words.
    """
    shutil.copytree(source, directory)
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    pieces = tokenizer["model"]["vocab"]
    moved = np.arange(len(pieces))
    moved[len(SPECIAL) :] = rng.permutation(moved[len(SPECIAL) :])
    tokenizer["model"]["vocab"] = {piece: int(moved[id]) for piece, id in pieces.items()}
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    tensors = load_file(directory / "model.safetensors")
    for name in ("language_model.model.embed_tokens.weight", "language_model.lm_head.weight"):
        rows = tensors[name].clone()
        rows[torch.from_numpy(moved)] = tensors[name][: len(moved)]
        tensors[name] = rows
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def save_babbler(directory):
    """An untrained EventGPT that says random pieces of words, in tokens of bytes."""
    TinyEventGpt().save(directory)
    num_pieces = Model.checked(directory).view.num_text_ids
    unknown, begin, end = SPECIAL
    PreTrainedTokenizerFast(
        tokenizer_object=byte_level(num_pieces=num_pieces),
        unk_token=unknown,
        bos_token=begin,
        eos_token=end,
    ).save_pretrained(directory)
    tensors = load_file(directory / "model.safetensors")
    # Single bytes are hardly ever characters, and what has no piece is no text: such a draft ends
    # before it begins.
    tensors["lm_head.weight"][: len(SPECIAL) + len(BYTES)] = 0
    tensors["lm_head.weight"][num_pieces:] = 0
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module")
def clip():
    """One second of the lab's world, in frames and in events."""
    (clip,) = held_out_drive(1)
    return clip.clip


@pytest.fixture(scope="module")
def guided(trained_pair, tmp_path_factory):
    """The drafter is the target's own model under other ids: what it drafts in time is right."""
    shuffled = tmp_path_factory.mktemp("shuffled") / "model"
    shuffle_ids(trained_pair.target, shuffled, np.random.default_rng(0))
    with Headstart(
        trained_pair.target,
        drafter=EventDrafter(shuffled, ARGUMENTS),
        # Nobody else drafts, and drafts are verified whether they pay here or not.
        sources=Sources(drafters=(), abstain=False),
        max_draft_tokens=MAX_DRAFT_TOKENS,
        vllm=ARGUMENTS,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def alone(guided, clip):
    """The target's answers to both questions without any draft."""
    answers = {}
    for question in (SCENE, WEATHER):
        answer = ask_target(guided, clip, question, "nobody drafts this", MAX_TOKENS)
        assert drafted_and_accepted([answer]) == (0, 0)
        assert len(answer.token_ids) > 8
        answers[question] = answer
    return answers


@pytest.mark.parametrize("question", [SCENE, WEATHER])
def test_a_drafter_that_is_right_is_accepted_through_text(guided, clip, alone, question):
    expected = alone[question].token_ids
    with drafting(guided, clip, question, MAX_TOKENS) as (name, ear):
        draft = ear.wait_for(len(expected))
        assert draft.tokens == tuple(expected)  # to its end, the mark of which is among them
        answer = ask_target(guided, clip, question, name, MAX_TOKENS)
    assert answer.token_ids == expected
    drafted, accepted = drafted_and_accepted([answer])
    assert drafted == accepted >= len(expected) - answer.num_passes
    assert answer.num_passes <= 1 + len(expected) // MAX_DRAFT_TOKENS


def test_a_drafter_that_is_wrong_changes_no_token(guided, clip, alone):
    """It answers another question, and is told again and again what the target says."""
    with drafting(guided, clip, WEATHER, MAX_TOKENS) as (name, ear):
        ear.wait_for(len(alone[WEATHER].token_ids))
        answer = ask_target(guided, clip, SCENE, name, FEW_TOKENS)
    assert answer.token_ids == alone[SCENE].token_ids[:FEW_TOKENS]
    drafted, accepted = drafted_and_accepted([answer])
    assert drafted > accepted


def tell(headstart, name, said):
    """As the scheduler tells the drafter what the target has said."""
    outlet = drafter_of(headstart)._channel.asks_out()
    wait_until(lambda: send(outlet, messages.Said(name, tuple(said))))
    outlet.close(linger=round(PATIENCE_S * 1e3))


def test_a_drafter_is_told_of_words_that_it_has_foreseen(guided, clip, alone):
    expected = alone[SCENE].token_ids
    with drafting(guided, clip, SCENE, MAX_TOKENS) as (name, ear):
        ear.wait_for(len(expected))
        for count in (1, 7, len(expected) - 1):
            tell(guided, name, expected[:count])
            draft = ear.wait_until(lambda draft, count=count: draft.start == count)
            assert draft.tokens == tuple(expected[count:])


def test_a_drafter_goes_on_from_the_targets_words(guided, clip, alone):
    """From the first half of an answer that it did not foresee, with its second half."""
    expected = alone[SCENE].token_ids
    said = expected[: len(expected) // 2]
    with drafting(guided, clip, "What are the key elements?", MAX_TOKENS) as (name, ear):
        ear.wait_until(lambda draft: True)
        tell(guided, name, said)
        draft = ear.wait_until(lambda draft: draft.start == len(said) and len(draft.tokens) > 3)
    assert draft.tokens[:3] == tuple(expected[len(said) : len(said) + 3])


@pytest.mark.last
def test_random_words_in_other_tokens_change_no_token(guided, trained_pair, clip, alone, tmp_path):
    """Another drafter takes the place of the first: an engine that starts saves another."""
    save_babbler(tmp_path)
    channel = drafter_of(guided)._channel
    drafter_of(guided).close()
    drafter = EventDrafter(tmp_path, ARGUMENTS)
    answers = []
    with DrafterClient(channel, drafter, translated_for=str(trained_pair.target)) as client:
        guided.target.front_end.drafter = client
        client.wait_ready()
        for question, expected in alone.items():
            with drafting(guided, clip, question, MAX_TOKENS) as (name, ear):
                ear.wait_for(1)
                answers.append(ask_target(guided, clip, question, name, FEW_TOKENS))
            assert answers[-1].token_ids == expected.token_ids[:FEW_TOKENS]
    drafted, accepted = drafted_and_accepted(answers)
    assert drafted > accepted
