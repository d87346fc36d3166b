"""The tables that the commands of the research print: names, and figures beside them."""

from collections.abc import Iterable

from rich.table import Table


def figures_table(*names: str, figures: Iterable[str], title: str | None = None) -> Table:
    """A table without rows; ``names`` and ``figures`` are the headings of its columns."""
    table = Table(
        box=None,
        pad_edge=False,
        title=None if title is None else f"\n{title}",
        title_justify="left",
    )
    for name in names:
        table.add_column(name, no_wrap=True)
    for heading in figures:
        table.add_column(heading, justify="right")
    return table
