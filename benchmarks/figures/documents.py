"""Documents that hold tables between markers, and the tables by name.

A table stands between two lines of its own:

    <!-- table: speed -->
    ...
    <!-- end -->
"""

import re
from pathlib import Path

from benchmarks.figures import (
    bench,
    equality,
    evaluation,
    fleet,
    live,
    live_picture,
    live_sockets,
    load,
    load_picture,
    replay,
    serving,
    when_changed,
)
from benchmarks.figures.picture import PICTURE, head_start

TABLES = {
    **bench.TABLES,
    **equality.TABLES,
    **evaluation.TABLES,
    **fleet.TABLES,
    **live.TABLES,
    **live_sockets.TABLES,
    **load.TABLES,
    **replay.TABLES,
    **serving.TABLES,
    **when_changed.TABLES,
}
PICTURES = {
    PICTURE: head_start,
    live_picture.PICTURE: live_picture.live,
    load_picture.PICTURE: load_picture.load_picture,
    evaluation.PICTURE: evaluation.picture,
}
_TABLE = re.compile(r"^<!-- table: (\S+) -->$(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!--\s*/?\s*(?:table|end|figure)\b")


class MarkerError(ValueError):
    """A document's markers cannot be read, or name a table that does not exist."""


def filled(text: str) -> str:
    """A document's text with each of its tables made anew."""
    found = list(_TABLE.finditer(text))
    if 2 * len(found) != len(_MARKER.findall(text)):
        raise MarkerError(
            "a marker is misspelt or lacks its partner: write <!-- table: NAME --> and"
            " <!-- end -->, each alone on its line"
        )
    if unknown := {match[1] for match in found} - set(TABLES):
        raise MarkerError(f"no table is called {unknown}; there are {', '.join(TABLES)}")
    return _TABLE.sub(lambda m: f"<!-- table: {m[1]} -->\n{TABLES[m[1]]()}\n<!-- end -->", text)


def stale() -> dict[Path, str]:
    """The files that are out of date, and what each should hold."""
    wanted, faults = {}, []
    for path in documents():
        try:
            wanted[path] = filled(path.read_text())
        except MarkerError as error:
            faults.append(f"{path}: {error}")
    if faults:
        raise MarkerError("\n".join(faults))
    wanted |= {path: draw() for path, draw in PICTURES.items() if is_shown(path.name)}
    return {p: text for p, text in wanted.items() if not p.exists() or p.read_text() != text}


def unused() -> list[str]:
    """Tables and pictures that no document shows."""
    markers = [f"<!-- table: {name} -->" for name in TABLES]
    names = [path.name for path in PICTURES]
    return [each for each in (*markers, *names) if not is_shown(each)]


def is_shown(words: str) -> bool:
    """Whether any document has them."""
    return any(words in path.read_text() for path in documents())


def documents() -> list[Path]:
    """The files that may hold tables."""
    return [Path("README.md"), *sorted(Path("docs").glob("**/*.md"))]
