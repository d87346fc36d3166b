"""Two models share their tokens where every piece the drafter may say is the target's."""

import pytest

from headstart.errors import DraftingError
from headstart_events.beside.event_model import is_same_tokenizer

TARGET = {"<s>": 1, "▁the": 5, "▁car": 6, "▁tram": 7}


@pytest.mark.parametrize(
    ("drafter", "is_same"),
    [
        (TARGET, True),
        ({"<s>": 1, "▁the": 5, "▁car": 6}, True),  # the target may know more
        ({"<s>": 1, "▁car": 5}, False),
        ({"<s>": 1, "▁bus": 8}, False),
    ],
)
def test_one_piece_with_another_id_makes_another_tokenizer(drafter, is_same):
    assert is_same_tokenizer(TARGET, drafter) is is_same


@pytest.mark.parametrize(("target", "drafter"), [(TARGET, {}), ({}, TARGET)])
def test_a_model_without_text_is_refused(target, drafter):
    with pytest.raises(DraftingError, match="no pieces of text"):
        is_same_tokenizer(target, drafter)
