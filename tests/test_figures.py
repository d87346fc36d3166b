"""The documents' tables and the picture are what benchmarks/results say."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from benchmarks import keep
from benchmarks.figures import documents, live_picture, live_sockets, picture, results
from benchmarks.figures.results import RESULTS

TABLE = "<!-- table: letters -->\n| a |\n<!-- end -->\n"


def test_no_document_is_out_of_date():
    out_of_date = [str(path.relative_to(documents.ROOT)) for path in documents.stale()]
    assert not out_of_date, f"{out_of_date} do not show the committed results: run `make figures`"


def test_a_changed_figure_is_noticed_and_written_anew(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "costs.md").write_text((documents.ROOT / "docs/costs.md").read_text())
    pictures = {tmp_path / path for path in documents.PICTURES}
    for path in pictures:
        path.parent.mkdir(exist_ok=True)
        path.write_text("an old picture")
    shown = re.sub(r"\d\.\d\d \(", "9.99 (", documents.TABLES["speed"](), count=1)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n\n<!-- table: speed -->\n{shown}\n<!-- end -->\n\nafter\n")

    stale = documents.stale(tmp_path)
    assert set(stale) == {readme, *pictures}
    assert stale[readme] == readme.read_text().replace(shown, documents.TABLES["speed"]())


def test_every_table_is_in_a_document():
    texts = [path.read_text() for path in documents.documents()]
    for name in documents.TABLES:
        assert any(f"<!-- table: {name} -->" in text for text in texts), f"{name} is not used"


def test_what_stands_between_markers_is_replaced_whole():
    tables = {"letters": lambda: "| b |"}
    fresh = TABLE.replace("| a |", "| b |")
    assert documents.filled(f"x\n{TABLE}y\n{TABLE}", tables) == f"x\n{fresh}y\n{fresh}"
    assert documents.filled("<!-- table: letters -->\n<!-- end -->\n", tables) == fresh


@pytest.mark.parametrize(
    "text",
    [
        "words <!-- table: letters -->1<!-- end --> in a line",
        "words <!--figure run.json key d-->1<!--/figure--> in a line",
        "<!-- table: letters -->\n| a |\n",
        "<!-- table: letters -->\n" + TABLE,
        "<!-- table:letters -->\n| a |\n<!-- end -->\n",
        TABLE + "<!-- end -->\n",
    ],
    ids=["inline", "old mark", "not ended", "nested", "misspelt", "ended twice"],
)
def test_a_marker_that_cannot_be_read_is_an_error(text):
    with pytest.raises(documents.MarkerError, match="alone on its line"):
        documents.filled(text, {"letters": lambda: "| b |"})


def test_a_table_that_does_not_exist_is_an_error_that_names_those_that_do():
    with pytest.raises(documents.MarkerError, match="letters"):
        documents.filled(TABLE.replace("letters", "numbers"), {"letters": lambda: "| b |"})


def test_every_result_says_where_when_and_how_it_was_measured():
    files = sorted(RESULTS.glob("*.json"))
    assert files
    for file in files:
        measured = json.loads(file.read_text())
        about = {**measured, **measured.get("environment", {})}
        assert about["machine"], file.name
        assert about["date"][:2] == "20", file.name
        absolute = re.search(r"(?<![\w.])/(?:work|tmp|home|root)/", str(about.get("command", "")))
        assert not absolute, f"{file.name} names a path of one machine"


def test_what_a_command_prints_last_is_kept_with_its_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "RESULTS", tmp_path)
    script = "print('a table'); print('{\"tokens\": 7}')"
    monkeypatch.setattr(sys, "argv", ["keep", "counted", sys.executable, "-c", script])
    keep.main()
    (path,) = tmp_path.glob("counted_*.json")
    kept = json.loads(path.read_text())
    assert kept["tokens"] == 7
    assert kept["environment"]["machine"]
    assert script in shlex.split(kept["command"])


def test_the_picture_shows_two_equal_answers_of_which_ours_takes_fewer_passes():
    bare, ours = picture.typical_pair()
    assert sum(bare.tokens) == sum(ours.tokens) == len(bare.tokens)
    assert len(ours.tokens) < len(bare.tokens)
    assert ours.end_s < bare.end_s
    drawn = picture.head_start()
    for run in (bare, ours):
        assert f">{run.end_s * 1e3:.0f} ms<" in drawn


def test_a_table_says_so_until_its_run_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    results.result.cache_clear()
    table = live_sockets.TABLES["live-sockets"]
    assert table() == live_sockets.NOT_KEPT
    waits = {"bare": {"p50_ms": 1400.0, "p95_ms": 1900.0}, "headstart": {"p50_ms": 200.0}}
    waits["headstart"]["p95_ms"] = 950.0
    ratios = {"ratio_p50": 7.0, "ratio_p95": 2.0}
    run = {"cameras": 8, "window_s": 16.0, **waits, **ratios, "by_round": [ratios, ratios]}
    (tmp_path / "serve_live_cpu-2-cores_2026-01-01.json").write_text(json.dumps(run))
    rows = table().splitlines()
    assert rows[0].startswith("| 8 cameras, windows of 16 s |")
    assert rows[-1] == "| 95% within, ms | 1900 | 950 | 2.00 | 2.00, 2.00 |"
    results.result.cache_clear()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("drawn", [picture, live_picture], ids=["a file", "a live camera"])
def test_a_picture_is_legible_in_both_themes(browser, drawn, theme):
    path = Path(documents.ROOT / drawn.PICTURE)
    with browser.open(path.as_uri(), width=900) as page:
        scheme = {"name": "prefers-color-scheme", "value": theme}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        boxes = page.evaluate(
            "[...document.querySelectorAll('text')].map(t => [t.textContent, t.getBBox()])"
            ".map(([words, b]) => [words, b.x, b.y, b.x + b.width, b.y + b.height])"
        )
        colours = page.evaluate(
            "['text', 'rect'].map(name => getComputedStyle(document.querySelector(name)).fill)"
        )
        assert page.complaints == []
    assert len(boxes) > 10
    for words, left, top, right, bottom in boxes:
        assert left >= 0, words
        assert top >= 0, words
        assert right <= drawn.WIDTH, words
        assert bottom <= drawn.HEIGHT, words
    for number, (words, left, top, right, bottom) in enumerate(boxes):
        for other, left_2, top_2, right_2, bottom_2 in boxes[:number]:
            apart = right <= left_2 or right_2 <= left or bottom <= top_2 or bottom_2 <= top
            assert apart, f"{words!r} covers {other!r}"
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in colours)
    assert abs(ink - paper) > 100  # the faintest words
    assert (paper > 128) == (theme == "light")
