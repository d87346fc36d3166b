"""The page: complete without a network, right in a real browser, on a desk and on a phone."""

import dataclasses
import re

import pytest

from headstart_research.bench.page import page
from tests.bench.played import OPEN_SHARES, played_open_result, played_result

CHARTS = (
    "End to end, every answer",
    "First token, every answer",
    "Acceptance by position, verified with the prompt",
    "Acceptance by position, later drafts",
    "Five stages",
    "One answer",
    "Speed-up against answer length",
)


def test_everything_is_on_the_page_and_nothing_comes_from_elsewhere():
    text = page(played_result())
    for title in CHARTS:
        assert text.count(f"<h3>{title}</h3>") == 2  # one a workload
    assert "<script" not in text
    assert not re.search(r"(src|href|url)\s*[=(]", text)
    assert "&lt;not installed&gt;" in text  # words from outside are not markup
    figures = played_result().summary()["fixed"]["memory"]
    assert f"{figures['end_to_end']:.2f} <span" in text


def test_other_words_are_said_on_the_page():
    result = played_result()
    changed = tuple(dataclasses.replace(s, words=s.method) for s in result.samples)
    text = page(dataclasses.replace(result, samples=changed))
    assert "20 of 20 answers are not token for token" in text
    assert "token for token." in page(result)


def test_an_open_workload_is_shown_by_load_and_each_load_by_itself():
    text = page(played_open_result())
    assert text.count("<h2>open-4, by load</h2>") == 1
    assert "2.00 answers a second" in text
    for percent in (50, 95, 99):
        assert text.count(f"<h3>{percent}% of the answers within</h3>") == 1
    for name in [*OPEN_SHARES, "open-4 in bursts"]:
        assert f"<h2>{name}</h2>" in text
    # A queue is nothing that the planner knows.
    assert "<h2>Forecast</h2>" not in text
    assert "by load" not in page(played_result())


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_it_whole(browser, tmp_path, width):
    (tmp_path / "bench.html").write_text(page(played_result()))
    address = (tmp_path / "bench.html").as_uri()
    with browser.open(address, width=width) as opened:
        assert opened.evaluate("document.querySelectorAll('svg.chart').length") == 2 * len(CHARTS)
        # Nothing sticks out sideways: tables scroll in their own box.
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        smallest = opened.evaluate(
            "Math.min(...[...document.querySelectorAll('svg.chart text')]"
            ".map(t => t.getBoundingClientRect().height))"
        )
        assert smallest >= 10
        cut_off = opened.evaluate(
            "[...document.querySelectorAll('svg.chart text')].filter(text =>"
            " text.getBoundingClientRect().right"
            " > text.ownerSVGElement.getBoundingClientRect().right + 1).length"
        )
        assert cut_off == 0
        opened.screenshot(tmp_path / f"page-{width}.png")
        assert opened.complaints == []
        assert opened.requested == [address]
