"""The documents' tables and the pictures are what benchmarks/results say."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.figures import ROOT, keep, run_figures, tables_of

RESULTS = ROOT / "benchmarks" / "results"
ANSWER_PICTURE = ROOT / "docs" / "pictures" / "head-start.svg"
WINDOW_PICTURE = ROOT / "docs" / "pictures" / "live.svg"
MARKED = re.compile(r"<!-- table: (\S+) -->\n(.*?)\n<!-- end -->", re.DOTALL)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The documents and results in a checkout of its own."""
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "README.md", checkout)
    shutil.copytree(ROOT / "docs", checkout / "docs")
    (checkout / "benchmarks").mkdir()
    (checkout / "benchmarks" / "results").symlink_to(RESULTS)
    return checkout


def test_no_document_is_out_of_date_and_no_table_is_unused():
    looked = run_figures(ROOT, "--check")
    assert looked.returncode == 0, looked.stderr


def test_what_is_out_of_date_is_named_and_written_anew(copied):
    readme, picture = copied / "README.md", copied / ANSWER_PICTURE.relative_to(ROOT)
    right, unused = readme.read_text(), MARKED.search((copied / "docs/guides/fleet.md").read_text())
    readme.write_text(re.sub(r"\d\.\d times sooner", "9.9 times sooner", right, count=1))
    picture.write_text("an old picture")
    (copied / "docs/guides/fleet.md").write_text("a page that shows no table")
    looked = run_figures(copied, "--check")
    assert looked.returncode == 1
    lines = looked.stderr.splitlines()
    assert [line.split()[0] for line in lines if "out of date" in line] == [
        "README.md",
        "docs/pictures/head-start.svg",
    ]
    assert f"no document shows <!-- table: {unused[1]} -->" in lines
    assert "9.9 times sooner" in readme.read_text()  # only looked at
    assert run_figures(copied).returncode == 0
    assert readme.read_text() == right
    assert picture.read_text() == ANSWER_PICTURE.read_text()


@pytest.mark.parametrize("inside", ["", "| an old table |\n", "| old |\n\n| and longer |\n"])
def test_what_stands_between_markers_is_replaced_whole(tmp_path, inside):
    keep(tmp_path, "lab_scores", lab_scores(0.875))
    fresh = "\n".join(*tables_of(tmp_path, "lab-scores"))
    assert "| target | 87.5% |" in fresh
    marked = f"<!-- table: lab-scores -->\n{inside}<!-- end -->\n"
    (tmp_path / "README.md").write_text(f"x\n{marked}y\n{marked}")
    assert run_figures(tmp_path).returncode == 0
    marked = f"<!-- table: lab-scores -->\n{fresh}\n<!-- end -->\n"
    assert (tmp_path / "README.md").read_text() == f"x\n{marked}y\n{marked}"


def lab_scores(facts: float) -> dict[str, object]:
    models = ("target", "drafter", "target_blind", "drafter_blind")
    wanted = {"target": 0.9, "drafter": 0.7}
    return {"num_questions": 8, "wanted": wanted, **{name: {"facts": facts} for name in models}}


def test_a_marker_that_cannot_be_read_is_an_error_that_names_the_document(tmp_path):
    table = "<!-- table: lab-scores -->\n| a |\n<!-- end -->\n"
    wrong = {
        "inline": "words <!-- table: lab-scores -->1<!-- end --> in a line",
        "old-mark": "words <!--figure run.json key d-->1<!--/figure--> in a line",
        "not-ended": "<!-- table: lab-scores -->\n| a |\n",
        "nested": "<!-- table: lab-scores -->\n" + table,
        "misspelt": "<!-- table:lab-scores -->\n| a |\n<!-- end -->\n",
        "ended-twice": table + "<!-- end -->\n",
    }
    keep(tmp_path, "lab_scores", lab_scores(0.5))
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(table.replace("lab-scores", "numbers"))
    for name, text in {"right": table, **wrong}.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    made = run_figures(tmp_path)
    assert made.returncode == 1
    unknown, *others = made.stderr.splitlines()
    assert unknown.startswith("README.md: no table is called {'numbers'}; there are speed, ")
    assert {line.split(":")[0] for line in others} == {f"docs/{name}.md" for name in wrong}
    assert all(line.endswith("each alone on its line") for line in others)
    assert (tmp_path / "docs" / "right.md").read_text() == table  # nothing is written


def test_a_table_without_a_run_is_an_error_that_names_the_run(tmp_path):
    (tmp_path / "README.md").write_text("<!-- table: live-fuzz -->\n<!-- end -->\n")
    made = run_figures(tmp_path)
    assert made.returncode == 1
    assert "no run of serve_live_fuzz" in made.stderr


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


def test_what_a_command_prints_last_is_kept_with_its_machine(tmp_path):
    script = "print('a table'); print('{\"tokens\": 7}')"
    command = [sys.executable, "-c", script]
    words = ["-m", "benchmarks.keep", "--output", str(tmp_path), "counted", *command]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("counted_*.json")
    kept = json.loads(path.read_text())
    assert kept["tokens"] == 7
    assert kept["environment"]["machine"]
    assert shlex.split(kept["command"]) == command


def test_the_picture_shows_two_equal_answers_of_which_ours_takes_fewer_passes():
    drawn = ANSWER_PICTURE.read_text()
    bare_ms, bare_passes, tokens, our_ms, our_passes = map(
        int, re.findall(r"\d+", re.search("<title>(.*)</title>", drawn)[1])
    )
    assert tokens == bare_passes  # a token each
    assert our_passes < bare_passes
    assert our_ms < bare_ms
    for milliseconds in (bare_ms, our_ms):
        assert f">{milliseconds} ms<" in drawn


def test_a_table_shows_the_newest_run(tmp_path):
    waits = {"bare": {"p50_ms": 1400.0, "p95_ms": 1900.0}, "headstart": {"p50_ms": 200.0}}
    waits["headstart"]["p95_ms"] = 950.0
    ratios = {"ratio_p50": 7.0, "ratio_p95": 2.0}
    run = {"cameras": 8, "window_s": 16.0, **waits, **ratios, "by_round": [ratios, ratios]}
    keep(tmp_path, "serve_live", run)
    older = tmp_path / "benchmarks/results/serve_live_cpu-2-cores_2025-12-31.json"
    older.write_text("{}")
    (rows,) = tables_of(tmp_path, "live-sockets")
    assert rows[0].startswith("| 8 cameras, windows of 16 s |")
    assert rows[-1] == "| 95% within, ms | 1900 | 950 | 2.00 | 2.00, 2.00 |"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("picture", [ANSWER_PICTURE, WINDOW_PICTURE], ids=["a file", "a window"])
def test_a_picture_is_legible_in_both_themes(browser, picture, theme):
    size = ElementTree.parse(picture).getroot().attrib["viewBox"].split()[2:]
    width, height = map(int, size)
    with browser.open(picture.as_uri(), width=900) as page:
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
        assert right <= width, words
        assert bottom <= height, words
    for number, (words, left, top, right, bottom) in enumerate(boxes):
        for other, left_2, top_2, right_2, bottom_2 in boxes[:number]:
            apart = right <= left_2 or right_2 <= left or bottom <= top_2 or bottom_2 <= top
            assert apart, f"{words!r} covers {other!r}"
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in colours)
    assert abs(ink - paper) > 100  # the faintest words
    assert (paper > 128) == (theme == "light")
