"""A stage has one colour, wherever it is drawn."""

import re
from pathlib import Path

import pytest

from headstart.answers.timeline import STAGE_COLOURS, Stage
from headstart_research.bench.svg import PALETTE, STYLE
from headstart_server.page import PAGE

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
DRAWN = {
    "the page of a server": PAGE.decode(),
    "the page of a bench": STYLE,
    **{path.name: path.read_text() for path in PICTURES.glob("*.svg")},
}


@pytest.mark.parametrize("text", DRAWN.values(), ids=DRAWN)
def test_every_page_and_picture_has_the_same_colours(text):
    colours = {str(stage): colour for stage, colour in STAGE_COLOURS.items()}
    colours["pass"] = STAGE_COLOURS[Stage.DECODE]  # a pass after the first, as pictures call it
    names = "|".join(colours)
    for name, colour in re.findall(rf"--({names}): *([^;}}]+)", text):
        assert colour == colours[name], name


def test_every_stage_is_drawn_and_no_curve_has_its_colour():
    assert set(STAGE_COLOURS) == set(Stage)
    for stage, colour in STAGE_COLOURS.items():
        assert f"--{stage}: {colour};" in DRAWN["the page of a server"]
        assert f"--{stage}:{colour};" in STYLE
    curves = re.findall(rf"--(?:{'|'.join(PALETTE)}):(#\w+)", STYLE)
    assert len(curves) == 2 * len(PALETTE)  # for light pages and for dark ones
    assert not set(curves) & set(STAGE_COLOURS.values())
