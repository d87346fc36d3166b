"""What benchmarks wrote, and the shape of a table."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


def path_of(name: str, day: str = "2026-11-16") -> Path:
    """The file of one run on the machine that all committed figures are of."""
    return RESULTS / f"{name}_cpu-2-cores_{day}.json"


@cache
def result(name: str, day: str = "2026-11-16") -> Any:
    """What one run wrote."""
    return json.loads(path_of(name, day).read_text())


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as a document holds it."""
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(headings)}", *lines[1:]])
