"""A drafter that spells otherwise is refused, with what differs."""

import pytest

from headstart.errors import DraftingError
from headstart.speculation.same_tokenizer import check_same_tokenizer

TARGET = {"<s>": 1, "▁the": 5, "▁car": 6, "▁tram": 7}


def test_the_target_may_know_more_than_the_drafter():
    check_same_tokenizer(TARGET, {"<s>": 1, "▁the": 5, "▁car": 6})


@pytest.mark.parametrize(
    ("drafter", "word"),
    [
        ({"<s>": 1, "▁car": 5}, "'▁car' is 5 to the drafter and 6 to the target"),
        ({"<s>": 1, "▁bus": 8}, "'▁bus' is 8 to the drafter and unknown to the target"),
        ({}, "it has none"),
    ],
)
def test_a_piece_with_another_id_is_named(drafter, word):
    with pytest.raises(DraftingError, match=word):
        check_same_tokenizer(TARGET, drafter)
