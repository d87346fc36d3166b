"""The lab's tokenizer: any text survives it, and placeholders stay out of the text's ids."""

import pytest

pytest.importorskip("transformers")

from headstart_lab.tiny import PLACEHOLDERS
from headstart_lab.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["the car and the road"] * 4, 400, added_tokens=PLACEHOLDERS)


@pytest.mark.parametrize("text", ["the car", "Ünïcode é 車\nnew line", "  two  spaces ", "<s>"])
def test_text_survives_a_round_trip(tokenizer, text):
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_placeholders_come_after_every_piece_of_text(tokenizer):
    first = tokenizer.convert_tokens_to_ids("<image>")
    assert first == len(tokenizer) - len(PLACEHOLDERS)
    text_ids = tokenizer("the car crosses, quickly!")["input_ids"]
    assert max(text_ids) < first
    assert text_ids[0] == tokenizer.bos_token_id
