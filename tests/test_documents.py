"""How much a reader is asked to read: what is written by hand stays small.

A page that needs more room takes it from another page, or raises its cap in the commit that needs
it, with a line that says why.
"""

import re

import pytest

from tests.documents import ROOT, by_hand, words_by_hand

CAPS = {
    "pages by hand": 25,
    "words by hand": 35_000,
    "lines of README": 110,
}


def test_what_is_written_by_hand_stays_small():
    pages = by_hand()
    counted = {
        "pages by hand": len(pages),
        "words by hand": sum(words_by_hand(path.read_text()) for path in pages),
        "lines of README": len((ROOT / "README.md").read_text().splitlines()),
    }
    over = {name: f"{number} of {CAPS[name]}" for name, number in counted.items()}
    assert all(counted[name] <= cap for name, cap in CAPS.items()), over


def test_pages_that_programs_write_are_not_counted():
    names = {str(path.relative_to(ROOT)) for path in by_hand()}
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/promise.md"} <= names
    assert "docs/guides/camera.md" in names
    assert not any(name.startswith("docs/reference/") for name in names)
    assert "docs/licences.md" not in names


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Two words, and 3 more.", 5),
        ("| a | table | by hand |", 4),
        ("before\n<!-- table: speed -->\n| 1 | 2 |\n<!-- end -->\nafter", 2),
        ("```bash\nheadstart doctor\n```", 3),
    ],
    ids=["a sentence", "a table", "a table of a program's", "a command"],
)
def test_words_are_counted_outside_of_what_a_program_fills_in(text, number):
    assert words_by_hand(text) == number


def test_every_page_is_reached_from_readme():
    """A page that nobody is led to might as well be cut."""
    linked = set(re.findall(r"\]\((docs/[^)#]+\.md|[A-Z]+\.md)", (ROOT / "README.md").read_text()))
    missing = {str(path.relative_to(ROOT)) for path in by_hand()} - linked - {"README.md"}
    assert not missing
