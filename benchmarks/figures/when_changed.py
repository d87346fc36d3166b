"""Tables of `--when changed`: what is asked, missed and saved, by threshold."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.figures.results import markdown, result

HEADINGS = (
    "questions",
    "saved",
    "while standing",
    "changes missed",
    "noticed after",
    "answers out of date",
)


def trade_off(run: str, question: str) -> str:
    """A row for each threshold, with events of both kinds, and for asking every second time."""
    measured = result(run)
    default = measured["default_threshold"]
    rows = []
    for label, row in measured[question].items():
        name, _, threshold = label.partition(", ")
        if threshold and float(threshold) == default:
            label = f"**{name}, {threshold} (the default)**"
        rows.append((label, *_cells(row)))
    first = f"{measured['windows']} windows, {measured['standing']:.0%} standing"
    return markdown((first, *HEADINGS), rows)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['asked']}",
        f"{row['saved']:.0%}",
        f"{row['saved_standing']:.0%}",
        f"{row['missed']} of {row['changes']}",
        f"{row['delay_s']:.2f} s",
        f"{row['out_of_date']:.1%}",
    )


TABLES: dict[str, Callable[[], str]] = {
    "when-changed": partial(trade_off, "when_changed", "key_elements"),
    "when-changed-quiet": partial(trade_off, "when_changed_quiet", "key_elements"),
}
