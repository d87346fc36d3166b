"""Tables and picture of load, drawn from a result that was played by arithmetic."""

import json
from xml.etree import ElementTree

import pytest

from headstart_research.bench.result import BARE, BenchResult
from tests.bench.played import OPEN_METHODS, OPEN_SHARES, played_open_result, played_result
from tests.figures import keep, tables_of

OPEN = played_open_result()


def renamed(result: BenchResult, old: str, new: str) -> dict[str, object]:
    """As the documents call the workload."""
    return json.loads(json.dumps(result.as_json()).replace(old, new))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The three tables, and the picture beside them."""
    checkout = tmp_path_factory.mktemp("checkout")
    keep(checkout, "bench_lab-pair_open-16", renamed(OPEN, "open-4", "open-16"))
    closed = renamed(played_result(), "streams-2", "streams-16")
    keep(checkout, "bench_lab-pair_closed-16", closed)
    names = ("load", "load-closed", "load-goodput")
    tables = tables_of(checkout, *names, words="![waits](docs/pictures/load.svg)")
    found = dict(zip(names, map(cells, tables), strict=True))
    return {**found, "picture": ElementTree.parse(checkout / "docs/pictures/load.svg").getroot()}


def cells(lines: list[str]) -> list[list[str]]:
    """The rows of a table, the headings first."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:1] + lines[2:]]


def test_every_load_has_a_row_of_every_method_with_its_waits_and_ratios(made):
    headings, *rows = made["load"]
    assert [row[0] for row in rows[::3]] == ["at 0.5", "at 0.7", "at 0.85", "at 0.95", "in bursts"]
    assert [row[2] for row in rows] == [BARE, "none", "memory"] * 5
    assert {len(row) for row in rows} == {len(headings)}
    of_memory = dict(zip(headings, rows[2], strict=True))
    bare_s = OPEN.percentile_s("open-4 at 0.5", BARE, 95, "memory")
    own_s = OPEN.percentile_s("open-4 at 0.5", "memory", 95)
    assert of_memory["p95, s"] == f"{own_s:.2f}"
    assert of_memory["p95 ratio"] == f"{bare_s / own_s:.2f}"
    assert float(of_memory["answers a second"]) == pytest.approx(1.0, abs=0.01)
    of_bare = dict(zip(headings, rows[0], strict=True))
    assert of_bare["p95 ratio"] == ""
    assert of_bare["answers"] == "80"  # beside two methods


def test_a_closed_loop_has_a_row_of_every_method(made):
    headings, *rows = made["load-closed"]
    assert [row[0] for row in rows] == [BARE, "none", "memory", "wrong"]
    memory = dict(zip(headings, rows[2], strict=True))
    assert float(memory["throughput"]) > 1.5
    assert float(memory["p50 ratio"]) > 1.5


def test_goodput_says_where_nothing_higher_was_played(made):
    headings, *rows = made["load-goodput"]
    assert headings[1].startswith("questions a second, 95% within")
    said = dict(rows)
    assert said["memory"].endswith("the highest that was played")
    assert said[BARE] in [f"{2.0 * share:.2f}" for share in OPEN_SHARES.values()]


def test_the_picture_has_a_panel_for_each_percentile_with_a_line_for_each_method(made):
    svg = "{http://www.w3.org/2000/svg}"
    drawn = made["picture"]
    width, height = map(int, drawn.attrib["viewBox"].split()[2:])
    lines = drawn.findall(f"{svg}polyline")
    assert len(lines) == 3 * len(OPEN_METHODS)
    assert all(len(line.attrib["points"].split()) == len(OPEN_SHARES) for line in lines)
    rings = [one for one in drawn.findall(f"{svg}circle") if one.attrib["fill"] == "none"]
    assert len(rings) == 3 * len(OPEN_METHODS)
    for one in drawn.findall(f"{svg}circle"):
        assert 0 < float(one.attrib["cy"]) < height
        assert 0 < float(one.attrib["cx"]) < width
    words = [one.text for one in drawn.findall(f"{svg}text")]
    assert words.count("95% of the answers within, s") == 1
    assert {BARE, "none", "memory"} <= set(words)
