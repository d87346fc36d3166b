"""Which pages there are, what makes each, and which of them are out of date."""

from collections.abc import Callable
from pathlib import Path

from reference import commands, doctor, http, python, settings, websocket

ROOT = Path(__file__).parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/commands.md": commands.page,
    "docs/reference/doctor.md": doctor.page,
    "docs/reference/http.md": http.page,
    "docs/reference/python.md": python.page,
    "docs/reference/settings.md": settings.page,
    "docs/reference/websocket.md": websocket.page,
}


def stale(root: Path = ROOT) -> dict[Path, str]:
    """The pages that are out of date, and what each should hold."""
    wanted = {root / path: make() for path, make in PAGES.items()}
    return {p: text for p, text in wanted.items() if not p.exists() or p.read_text() != text}
