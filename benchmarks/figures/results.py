"""What benchmarks wrote, and the shape of a table."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results")
"""Of the checkout in which the program runs."""


def path_of(name: str) -> Path:
    """The file of the newest run on the machine that all committed figures are of."""
    found = sorted(RESULTS.glob(f"{name}_cpu-2-cores_????-??-??.json"))
    if not found:
        raise SystemExit(f"{RESULTS} has no run of {name}, which a document's table is of")
    return found[-1]


@cache
def result(name: str) -> Any:
    """What that run wrote."""
    return json.loads(path_of(name).read_text())


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as a document holds it."""
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(headings)}", *lines[1:]])
