"""Keeps what engines print in a file, so that a failure far away can be read about later."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def kept_output(path: Path) -> Iterator[None]:
    """Append what this process and those it starts print in the block to ``path``.

    By descriptor, because the engines' processes inherit those.
    """
    _flush()
    before = [os.dup(1), os.dup(2)]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        _flush()
        for number, kept in enumerate(before, start=1):
            os.dup2(kept, number)
            os.close(kept)
        os.close(log)


def last_lines(path: Path, start: int, num_lines: int) -> list[str]:
    """The end of what was printed since byte ``start``; the user's directory is left out."""
    with path.open("rb") as log:
        log.seek(start)
        text = log.read().decode(errors="replace")
    return without_home(_COLOURS.sub("", text)).splitlines()[-num_lines:]


def without_home(text: str) -> str:
    """The text with ``~`` for the user's directory, whose name may be theirs."""
    return text.replace(str(Path.home()), "~")


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
