"""docs/notes-checked.md holds exactly the tables that its script prints."""

from pathlib import Path

from benchmarks.notes_checked import tables

DOCUMENT = Path(__file__).parents[2] / "docs" / "notes-checked.md"


def test_the_page_on_the_notes_holds_what_the_script_prints():
    printed = [line for table in tables() for line in table.markdown().splitlines()]
    assert len(printed) > 20
    assert [line for line in DOCUMENT.read_text().splitlines() if line.startswith("|")] == printed
