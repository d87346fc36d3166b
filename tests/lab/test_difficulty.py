"""The lab is no easier than reality, and its tokenizer spells its language."""

import pytest

pytest.importorskip("transformers")

from headstart_events.eventgpt.view import event_prompt
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE
from headstart_lab.measures.difficulty import blind_top1, measure_difficulty, suffix_tokens_per_pass
from headstart_lab.split import Split
from headstart_lab.vocabulary import LAB_PLACEHOLDERS, train_lab_tokenizer
from headstart_lab.world.drive import SECOND_US, Drive


@pytest.fixture(scope="module")
def tokenizer():
    return train_lab_tokenizer(num_drives=25, num_clips=8)


def test_the_lab_is_no_easier_than_reality(tokenizer):
    difficulty = measure_difficulty(tokenizer, seeds=Split.HELD_OUT.seeds(2), num_other_drives=25)
    assert difficulty.drafter_raw < 0.05
    assert difficulty.previous_answer < 21.0
    assert difficulty.best_earlier < 29.0
    assert 4.5 < difficulty.suffix_tokens_per_pass < 6.2
    assert difficulty.blind_top1 < 0.8
    assert "19.8" in difficulty.table()


def test_answers_are_of_20_to_90_tokens_and_need_no_bytes(tokenizer):
    first_byte, last_byte = tokenizer.convert_tokens_to_ids(["<0x00>", "<0xFF>"])
    for seed in Split.HELD_OUT.seeds(8):
        scene = Drive(seed).scene(30 * SECOND_US)
        for question in Question:
            for style in (TARGET_STYLE, DRAFTER_STYLE):
                text = style.answer(scene, question).text
                ids = tokenizer(text, add_special_tokens=False)["input_ids"]
                assert 20 <= len(ids) <= 90, text
                assert not [i for i in ids if first_byte <= i <= last_byte]


def test_every_placeholder_is_one_token_after_the_text(tokenizer):
    ids = tokenizer.convert_tokens_to_ids(list(LAB_PLACEHOLDERS))
    assert ids == list(range(len(tokenizer) - len(LAB_PLACEHOLDERS), len(tokenizer)))
    prompt = tokenizer(event_prompt("What is this clip about?"))["input_ids"]
    assert [i for i in prompt if i >= ids[0]] == [ids[4], ids[3], ids[5]]


def test_memory_of_one_repeated_answer_needs_one_pass_a_block():
    answer = list(range(34))
    # The first answer takes a pass a token; each repetition three blocks of 16 and one.
    assert suffix_tokens_per_pass([answer]) == 1.0
    assert suffix_tokens_per_pass([answer] * 2) == 68 / (34 + 2)


def test_a_blind_guesser_learns_what_always_follows():
    assert blind_top1([[1, 2, 3]] * 3, [[1, 2, 3]]) == 1.0
    assert blind_top1([[1, 2, 3]] * 3, [[1, 2, 9]]) == pytest.approx(2 / 3)
