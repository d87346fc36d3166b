"""The options of approximate answers."""

import pytest

from headstart.cli.approximate import approximation, omission_line
from headstart.errors import ApproximateError
from headstart.media.approximate import Approximate, ApproximateFrames, Omission


@pytest.mark.parametrize(
    ("patches", "frames", "meant"),
    [
        (None, None, None),
        ("0.5", None, Approximate(0.5)),
        ("1.0", None, Approximate(1.0)),
        ("256", None, Approximate(256)),
        ("auto", None, Approximate()),
        (None, "4", ApproximateFrames(4)),
        (None, "auto", ApproximateFrames()),
    ],
)
def test_options_are_a_share_a_number_or_auto(patches, frames, meant):
    assert approximation(patches, frames) == meant


@pytest.mark.parametrize(
    ("patches", "frames", "reason"),
    [
        ("0.5", "4", "not both"),
        ("half", None, "--approximate half: give a number such as 0.5"),
        (None, "few", "--approximate-frames few: give a number such as 4"),
        ("0", None, "give a share"),
        ("1.5", None, "give a share"),
        ("nan", None, "give a share"),
        (None, "0.5", "whole number"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_give(patches, frames, reason):
    with pytest.raises(ApproximateError, match=reason):
        approximation(patches, frames)


def test_the_line_says_approximate_and_how_much_is_missing():
    line = omission_line(Omission(num_patches=512, num_dropped_patches=256, num_dropped_steps=3))
    assert line.startswith("approximate: 256 of 512 patches (50%)")
    assert "nothing of 3 frames" in line
