"""Documents that hold tables between markers, and the tables by name.

A table stands between two lines of its own:

    <!-- table: speed -->
    ...
    <!-- end -->
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.figures import (
    bench,
    equality,
    evaluation,
    fleet,
    fleet_servers,
    lab,
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

ROOT = Path(__file__).parents[2]
TABLES = {
    **bench.TABLES,
    **equality.TABLES,
    **evaluation.TABLES,
    **fleet.TABLES,
    **fleet_servers.TABLES,
    **lab.TABLES,
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
    fleet.PICTURE: fleet.picture,
}
_TABLE = re.compile(r"^<!-- table: (\S+) -->$(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!--\s*/?\s*(?:table|end|figure)\b")


class MarkerError(ValueError):
    """A document's markers cannot be read, or name a table that does not exist."""


def filled(text: str, tables: Mapping[str, Callable[[], str]] = TABLES) -> str:
    """A document's text with each of its tables made anew."""
    found = list(_TABLE.finditer(text))
    if 2 * len(found) != len(_MARKER.findall(text)):
        raise MarkerError(
            "a marker is misspelt or lacks its partner: write <!-- table: NAME --> and"
            " <!-- end -->, each alone on its line"
        )
    unknown = {match[1] for match in found} - set(tables)
    if unknown:
        raise MarkerError(f"no table is called {unknown}; there are {', '.join(tables)}")
    return _TABLE.sub(lambda m: f"<!-- table: {m[1]} -->\n{tables[m[1]]()}\n<!-- end -->", text)


def stale(root: Path = ROOT) -> dict[Path, str]:
    """The files that are out of date, and what each should hold."""
    wanted = {path: filled(path.read_text()) for path in documents(root)}
    wanted |= {root / path: draw() for path, draw in PICTURES.items()}
    return {p: text for p, text in wanted.items() if not p.exists() or p.read_text() != text}


def documents(root: Path = ROOT) -> list[Path]:
    """The files that may hold tables."""
    return [root / "README.md", *sorted(root.glob("docs/**/*.md"))]
