"""What counts as written by hand: `test_sizes` holds how much of it there may be."""

import re

import pytest

from tests.documents import ROOT, by_hand, words_by_hand


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
