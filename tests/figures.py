"""Figures in documents, tied to the results they come from.

    <!--figure bench_lab.json summary/fixed/memory/end_to_end .2f-->1.87<!--/figure-->

A reader sees ``1.87``. The file is under benchmarks/results; the key leads through its JSON,
numbers through lists; the last word is Python's format.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_OPENED = re.compile(r"<!--\s*figure\b")
_FIGURE = re.compile(r"<!--figure (\S+) ([^>]+?) ([^\s>]+?)-->([^<]*)<!--/figure-->")


@dataclass(frozen=True)
class Figure:
    """One figure as a document has it."""

    file: str
    key: str
    form: str
    shown: str

    def measured(self, results: Path = RESULTS) -> str:
        """The same as the result has it."""
        path = results / self.file
        assert path.exists(), f"{self.file} is not in benchmarks/results"
        value = _read(path)
        for step in self.key.split("/"):
            value = value[int(step)] if isinstance(value, list) else value[step]
        return format(value, self.form)


@cache
def _read(path: Path) -> Any:
    """A result; with every sample in it, it is long."""
    return json.loads(path.read_text())


def figures_of(text: str) -> list[Figure]:
    """Every figure of a document; a mark that cannot be read is an error, not left out."""
    found = [Figure(*match.groups()) for match in _FIGURE.finditer(text)]
    assert len(found) == len(_OPENED.findall(text)), "a mark of a figure is misspelt"
    return found
