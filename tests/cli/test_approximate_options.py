"""The options of approximate answers."""

from pathlib import Path

import pytest

from headstart.bridges.kv_bridge import ApproximateKv
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
    assert approximation(patches, frames, None) == meant


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
        approximation(patches, frames, None)


def test_the_line_says_approximate_and_how_much_is_missing():
    line = omission_line(Omission(num_patches=512, num_dropped_patches=256, num_dropped_steps=3))
    assert line.startswith("approximate: 256 of 512 patches (50%)")
    assert "nothing of 3 frames" in line


def test_a_kv_bridge_is_one_way_and_two_ways_at_once_are_refused():
    guessed = Path("kv-bridge")
    assert approximation(None, None, guessed) == ApproximateKv(guessed)
    with pytest.raises(ApproximateError, match="one of them"):
        approximation("0.5", None, guessed)


def test_the_line_of_a_guessed_clip_says_approximate_too():
    assert omission_line(ApproximateKv("kv-bridge")).startswith("approximate: kv-bridge guessed")
