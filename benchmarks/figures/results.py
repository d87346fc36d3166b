"""What benchmarks wrote, and the shape of a table."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
NOT_KEPT = "No run of it is kept yet."
"""Stands where a table would."""


def path_of(name: str) -> Path:
    """The file of the newest run on the machine that all committed figures are of."""
    return max(RESULTS.glob(f"{name}_cpu-2-cores_????-??-??.json"))


def is_kept(name: str) -> bool:
    """Whether there is such a file."""
    return any(RESULTS.glob(f"{name}_cpu-2-cores_????-??-??.json"))


@cache
def result(name: str) -> Any:
    """What that run wrote."""
    return json.loads(path_of(name).read_text())


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as a document holds it."""
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(headings)}", *lines[1:]])
