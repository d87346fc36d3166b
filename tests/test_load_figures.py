"""Tables and picture of load, drawn from a result that was played by arithmetic."""

from xml.etree import ElementTree

import pytest
from benchmarks.figures import load, load_picture

from headstart_research.bench.result import BARE
from tests.bench.played import OPEN_METHODS, OPEN_SHARES, played_open_result, played_result


def cells(table: str) -> list[list[str]]:
    """The rows of a table, the headings first."""
    lines = table.splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:1] + lines[2:]]


def test_every_load_has_a_row_of_every_method_with_its_waits_and_ratios():
    result = played_open_result()
    headings, *rows = cells(load.load(result, "open-4"))
    assert [row[0] for row in rows[::3]] == ["at 0.5", "at 0.7", "at 0.85", "at 0.95", "in bursts"]
    assert [row[2] for row in rows] == [BARE, "none", "memory"] * 5
    assert {len(row) for row in rows} == {len(headings)}
    of_memory = dict(zip(headings, rows[2], strict=True))
    bare_s = result.percentile_s("open-4 at 0.5", BARE, 95, "memory")
    own_s = result.percentile_s("open-4 at 0.5", "memory", 95)
    assert of_memory["p95, s"] == f"{own_s:.2f}"
    assert of_memory["p95 ratio"] == f"{bare_s / own_s:.2f}"
    assert float(of_memory["answers a second"]) == pytest.approx(1.0, abs=0.01)
    of_bare = dict(zip(headings, rows[0], strict=True))
    assert of_bare["p95 ratio"] == ""
    assert of_bare["answers"] == "80"  # beside two methods


def test_a_closed_loop_has_a_row_of_every_method():
    headings, *rows = cells(load.closed(played_result(), "streams-2"))
    assert [row[0] for row in rows] == [BARE, "none", "memory", "wrong"]
    memory = dict(zip(headings, rows[2], strict=True))
    assert float(memory["throughput"]) > 1.5
    assert float(memory["p50 ratio"]) > 1.5


def test_goodput_says_where_nothing_higher_was_played():
    headings, *rows = cells(load.goodputs(played_open_result(), "open-4"))
    assert headings[1].startswith("questions a second, 95% within")
    said = dict(rows)
    assert said["memory"].endswith("the highest that was played")
    assert said[BARE] in [f"{2.0 * share:.2f}" for share in OPEN_SHARES.values()]


def test_the_picture_has_a_panel_for_each_percentile_with_a_line_for_each_method():
    svg = "{http://www.w3.org/2000/svg}"
    drawn = ElementTree.fromstring(load_picture.drawn(played_open_result(), "open-4"))
    lines = drawn.findall(f"{svg}polyline")
    assert len(lines) == 3 * len(OPEN_METHODS)
    assert all(len(line.attrib["points"].split()) == len(OPEN_SHARES) for line in lines)
    rings = [one for one in drawn.findall(f"{svg}circle") if one.attrib["fill"] == "none"]
    assert len(rings) == 3 * len(OPEN_METHODS)
    for one in drawn.findall(f"{svg}circle"):
        assert load_picture.TOP <= float(one.attrib["cy"]) <= load_picture.BOTTOM
        assert 0 < float(one.attrib["cx"]) < load_picture.WIDTH
    words = [one.text for one in drawn.findall(f"{svg}text")]
    assert words.count("95% of the answers within, s") == 1
    assert {BARE, "none", "memory"} <= set(words)
