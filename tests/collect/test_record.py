"""What a record tells beyond its fields."""

from dataclasses import replace

import pytest

from tests.collect.records import clip_records

RECORD = clip_records("a", 0)[0]


@pytest.mark.parametrize(
    ("prompt", "end"),
    [
        ((1, 7, 7, 7, 5, 6), (5, 6)),
        ((1, 7, 7, 9, 7, 7, 5), (5,)),
        ((1, 7, 7, 7), ()),
        ((), ()),
    ],
    ids=["a clip", "a clip in parts", "a clip at the end", "no prompt"],
)
def test_a_prompt_ends_with_the_text_after_the_clip(prompt, end):
    assert replace(RECORD, prompt_ids=prompt).prompt_end == end
