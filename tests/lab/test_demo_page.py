"""The demo's page: every fact marked for what was said of it, whole in one file, and looked at."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from headstart_lab.demo.page import demo_page
from headstart_lab.demo.showing import Shown, Side
from headstart_lab.language.facts import Fact
from headstart_lab.language.styles import Answer

PICTURES = np.random.default_rng(3).integers(0, 256, (8, 84, 84, 3), dtype=np.uint8)
TRUTH = Answer(
    "A red car drives ahead of us on a rainy day.",
    (Fact("ahead", "kind", "car"), Fact("weather", "is", "rain"), Fact("time", "is", "day")),
)


def shown(said, second=0):
    return Shown(
        second, "What is <ahead>?", Side(PICTURES, TRUTH, said), Side(PICTURES[:5], TRUTH, "")
    )


class Marks(HTMLParser):
    """The facts of each section, by the mark they were given."""

    def __init__(self, page):
        super().__init__()
        self.facts = []
        self._class = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self._class = dict(attributes).get("class") if tag == "li" else self._class

    def handle_endtag(self, tag):
        self._class = None if tag == "li" else self._class

    def handle_data(self, data):
        if self._class and ":" in data:
            self.facts.append((self._class, data.strip()))


def test_each_fact_is_marked_right_wrong_or_unsaid():
    page = demo_page([shown("A bus directly ahead. It must be a dry day.")], "headstart lab demo")
    assert Marks(page).facts == [
        ("wrong", "ahead: car"),
        ("wrong", "weather: rain"),
        ("right", "time: day"),
        ("absent", "ahead: car"),
        ("absent", "weather: rain"),
        ("absent", "time: day"),
    ]
    totals = re.findall(r'<tr id="(\w+)-total">.*?</tr>', page)
    assert totals == ["target", "drafter"]
    counts = re.search(r'"target-total".*?>(\d+)</td>.*?>(\d+)</td>.*?>(\d+)</td>', page).groups()
    assert counts == ("1", "2", "0")


def test_words_are_text_and_never_markup():
    page = demo_page([shown("<script>alert(1)</script>")], "headstart 'lab' <demo>")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "What is &lt;ahead&gt;?" in page
    assert "&lt;demo&gt;" in page


def test_the_truth_is_not_repeated_where_it_was_said():
    assert demo_page([shown(TRUTH.text)], "").count(TRUTH.text) == 2
    assert demo_page([shown("No idea.")], "").count(TRUTH.text) == 2


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desk"])
def test_a_browser_shows_all_of_it_without_asking_for_more(browser, tmp_path, width):
    file = tmp_path / "demo.html"
    texts = [TRUTH.text, "A bus directly ahead. It must be a dry day.", "ahead" * 60]
    file.write_text(demo_page([shown(text, n) for n, text in enumerate(texts)], "headstart"))
    with browser.open(file.as_uri(), width=width) as page:
        page.wait_for("Array.from(document.images).every(image => image.naturalWidth === 84)")
        assert page.evaluate("document.images.length") == 3 * 13
        # Nothing sticks out to the side, however long a word is.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        sides = page.evaluate(
            "Array.from(document.querySelectorAll('#second-0 section'))"
            ".map(each => each.getBoundingClientRect().left)"
        )
        assert (sides[0] == sides[1]) == (width < 600)
        assert page.screenshot(tmp_path / "page.png").stat().st_size > 10_000
        assert page.complaints == []
        assert {url for url in page.requested if not url.startswith("data:")} == {file.as_uri()}
